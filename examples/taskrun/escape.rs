//! Text that is safe to show: whatever a file, a name or a command's output
//! holds, no control character of it reaches the terminal.

use std::ffi::OsStr;
use std::fmt::Write;

/// Names are cut to this many characters in messages, so that a binary file
/// given by mistake does not fill the screen.
const LONGEST: usize = 120;

/// Bad input or a bad option: the complete line to print, without its newline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BadInput(pub(crate) String);

impl std::fmt::Display for BadInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Control characters move the cursor or change the screen; bidirectional
/// overrides and line separators make a line read as another one.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn push(out: &mut String, text: &str, keep: &[char]) {
    for c in text.chars() {
        if is_unsafe(c) && !keep.contains(&c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
}

fn push_bytes(out: &mut String, bytes: &[u8], keep: &[char]) {
    for chunk in bytes.utf8_chunks() {
        push(out, chunk.valid(), keep);
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
}

/// One line: newlines and tabs are escaped too.
pub(crate) fn line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    push(&mut out, text, &[]);
    out
}

/// One line, cut where it is very long.
pub(crate) fn short(bytes: &[u8]) -> String {
    let mut out = String::new();
    // Four bytes a character at most, and one more to see that it was cut.
    push_bytes(&mut out, &bytes[..bytes.len().min(4 * LONGEST + 4)], &[]);
    if let Some((at, _)) = out.char_indices().nth(LONGEST) {
        out.truncate(at);
        out.push('…');
    }
    out
}

/// The name of a file, whole: the user gave it.
pub(crate) fn path(name: &OsStr) -> String {
    let mut out = String::new();
    push_bytes(&mut out, name.as_encoded_bytes(), &[]);
    out
}

/// Captured output: newlines and tabs stay.
pub(crate) fn block(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    push_bytes(&mut out, bytes, &['\n', '\t']);
    out
}
