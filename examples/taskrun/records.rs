//! CSV, strictly by RFC 4180. The `csv` crate reads the fields. It accepts broken quoting, so a
//! scan of the same bytes finds that first, and gives the physical line where each record starts.
//!
//! As in the `csv` crate, an empty line is no record.

use csv::{ByteRecord, Reader, ReaderBuilder};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The quoting of a record is broken.
#[derive(Debug)]
pub(crate) struct Broken {
    /// The line where the record starts.
    pub(crate) line: u64,
    /// The field, counted from 0.
    pub(crate) field: usize,
    pub(crate) why: &'static str,
}

pub(crate) struct Records<'a> {
    scan: Scan<'a>,
    fields: Reader<&'a [u8]>,
}

impl<'a> Records<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        let scan = Scan {
            rest: bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes),
            line: 1,
        };
        let fields = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .from_reader(bytes);
        Self { scan, fields }
    }

    /// Fills `record` with the next record and gives its line; `None` at the
    /// end of the file.
    pub(crate) fn read(&mut self, record: &mut ByteRecord) -> Result<Option<u64>, Broken> {
        let Some(line) = self.scan.record()? else {
            return Ok(None);
        };
        // Reading from memory cannot fail, and any number of fields is taken.
        let more = self.fields.read_byte_record(record).unwrap_or(false);
        debug_assert!(more, "the scan and the csv crate see the same records");
        Ok(Some(line))
    }
}

struct Scan<'a> {
    rest: &'a [u8],
    line: u64,
}

impl Scan<'_> {
    /// Goes over one record and gives the line where it starts.
    fn record(&mut self) -> Result<Option<u64>, Broken> {
        while self.end_of_line() {}
        if self.rest.is_empty() {
            return Ok(None);
        }
        let line = self.line;
        let mut field = 0;
        loop {
            let went = if self.take(b'"') {
                self.quoted()
            } else {
                self.plain()
            };
            went.map_err(|why| Broken { line, field, why })?;
            if self.rest.is_empty() || self.end_of_line() {
                return Ok(Some(line));
            }
            if !self.take(b',') {
                let why = "a carriage return without a line feed";
                return Err(Broken { line, field, why });
            }
            field += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.rest.first() == Some(&byte);
        if found {
            self.rest = &self.rest[1..];
        }
        found
    }

    fn end_of_line(&mut self) -> bool {
        let after = match self.rest {
            [b'\n', after @ ..] | [b'\r', b'\n', after @ ..] => after,
            _ => return false,
        };
        self.rest = after;
        self.line += 1;
        true
    }

    /// From behind the opening quote to behind the closing one.
    fn quoted(&mut self) -> Result<(), &'static str> {
        loop {
            let Some(at) = self.rest.iter().position(|&b| b == b'"' || b == b'\n') else {
                return Err("a quote that is never closed");
            };
            let newline = self.rest[at] == b'\n';
            self.rest = &self.rest[at + 1..];
            if newline {
                self.line += 1;
            } else if !self.take(b'"') {
                break;
            }
        }
        match self.rest {
            [] | [b',' | b'\n' | b'\r', ..] => Ok(()),
            _ => Err("text after a closing quote"),
        }
    }

    fn plain(&mut self) -> Result<(), &'static str> {
        let ends = |b: &u8| matches!(b, b',' | b'\n' | b'\r' | b'"');
        let at = self.rest.iter().position(ends).unwrap_or(self.rest.len());
        self.rest = &self.rest[at..];
        match self.rest.first() {
            Some(b'"') => Err("a quote in a field that is not quoted"),
            _ => Ok(()),
        }
    }
}
