//! What targets share.

#[path = "../../tests/support/random.rs"]
mod random;

/// A random list of bytes, each changed by one of the fuzzer's. The fuzzer's own lists repeat
/// themselves, so a broken line takes up to ten times as long to find.
pub fn mixed(bytes: &[u8]) -> Vec<u8> {
    let mut random = random::Random(0);
    let mixed = bytes.iter().map(|byte| byte ^ random.below(256) as u8);
    mixed.collect()
}
