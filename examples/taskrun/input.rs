//! Reads the task list. Every error in it is found here, before anything runs.

use std::fs::File;
use std::hash::Hash;
use std::io::Read;
use std::path::Path;

use csv::ByteRecord;
use indexmap::{Equivalent, IndexSet};

use crate::escape::{self, BadInput};
use crate::options::whole;
use crate::records::{Broken, Records};

/// One task. A million of them is ordinary, so names are numbers here.
#[derive(Debug)]
pub(crate) struct Row {
    /// The physical line where its record starts.
    pub(crate) line: u64,
    /// Index into [`TaskList::callers`].
    pub(crate) caller: u32,
    pub(crate) tier: u32,
    /// Index into [`TaskList::groups`]; `None` is a group of its own.
    pub(crate) group: Option<u32>,
    pub(crate) bump: Option<u8>,
    pub(crate) arrive_ms: u32,
    pub(crate) duration_ms: u32,
    /// Without one the task takes `duration_ms`.
    pub(crate) command: Option<Box<str>>,
}

/// The rows in the order of the file: row 0 has the id 1.
#[derive(Debug, Default)]
pub(crate) struct TaskList {
    pub(crate) rows: Vec<Row>,
    /// In order of first appearance.
    pub(crate) callers: Vec<Box<str>>,
    /// Each group with its caller: the same name under two callers is two
    /// groups.
    pub(crate) groups: Vec<(u32, Box<str>)>,
}

impl TaskList {
    pub(crate) fn caller_of(&self, row: &Row) -> &str {
        &self.callers[row.caller as usize]
    }

    /// Empty where the row has a group of its own.
    pub(crate) fn group_of(&self, row: &Row) -> &str {
        row.group.map_or("", |group| &self.groups[group as usize].1)
    }

    /// The rows in order of arrival: by `arrive_ms`, then as in the file.
    pub(crate) fn arrivals(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.rows.len() as u32).collect();
        order.sort_by_key(|&row| self.rows[row as usize].arrive_ms);
        order
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Caller,
    Tier,
    Group,
    Bump,
    ArriveMs,
    DurationMs,
    Command,
}

impl Column {
    const ALL: [(&'static str, Self); 7] = [
        ("caller", Self::Caller),
        ("tier", Self::Tier),
        ("group", Self::Group),
        ("bump", Self::Bump),
        ("arrive_ms", Self::ArriveMs),
        ("duration_ms", Self::DurationMs),
        ("command", Self::Command),
    ];

    fn from_name(name: &[u8]) -> Option<Self> {
        let found = Self::ALL.iter().find(|(known, _)| known.as_bytes() == name);
        found.map(|&(_, column)| column)
    }

    fn name(self) -> &'static str {
        Self::ALL[self as usize].0
    }
}

/// A group's name within its caller, for look-ups without a copy.
#[derive(Hash)]
struct GroupKey<'a>(u32, &'a str);

impl Equivalent<(u32, Box<str>)> for GroupKey<'_> {
    fn equivalent(&self, key: &(u32, Box<str>)) -> bool {
        self.0 == key.0 && self.1 == &*key.1
    }
}

/// Reads and checks a task list. `longest` is the longest command that the
/// system takes; `None` when no command will run.
pub(crate) fn read(path: &Path, longest: Option<usize>) -> Result<TaskList, BadInput> {
    let file = escape::path(path.as_os_str());
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|mut opened| opened.read_to_end(&mut bytes))
        .map_err(|error| BadInput(format!("{file}: {error}")))?;
    let mut reading = Reading {
        file,
        longest,
        columns: Vec::new(),
        rows: Vec::new(),
        callers: IndexSet::new(),
        groups: IndexSet::new(),
    };
    reading.all(&bytes)?;
    drop(bytes);
    let Reading {
        file,
        rows,
        callers,
        groups,
        ..
    } = reading;
    let list = TaskList {
        rows,
        callers: callers.into_iter().collect(),
        groups: groups.into_iter().collect(),
    };
    check_tiers(&file, &list)?;
    Ok(list)
}

struct Reading {
    file: String,
    longest: Option<usize>,
    columns: Vec<Column>,
    rows: Vec<Row>,
    callers: IndexSet<Box<str>>,
    groups: IndexSet<(u32, Box<str>)>,
}

impl Reading {
    fn all(&mut self, bytes: &[u8]) -> Result<(), BadInput> {
        let mut records = Records::new(bytes);
        let mut record = ByteRecord::new();
        match records.read(&mut record) {
            Ok(Some(line)) => self.header(line, &record)?,
            Ok(None) => return Err(self.at(1, "no header")),
            Err(broken) => return Err(self.broken(&broken)),
        }
        while let Some(line) = records.read(&mut record).map_err(|b| self.broken(&b))? {
            let row = self.row(line, &record)?;
            // Rows are numbered with 32 bits.
            if self.rows.len() == u32::MAX as usize {
                return Err(self.at(line, "more rows than can be numbered"));
            }
            self.rows.push(row);
        }
        Ok(())
    }

    fn at(&self, line: u64, why: &str) -> BadInput {
        BadInput(format!("{}:{line}: {why}", self.file))
    }

    fn in_column(&self, line: u64, column: &str, why: &str) -> BadInput {
        BadInput(format!("{}:{line}: column {column}: {why}", self.file))
    }

    fn broken(&self, broken: &Broken) -> BadInput {
        self.in_column(broken.line, &self.name(broken.field), broken.why)
    }

    /// What a column is called: its number if it has no name.
    fn name(&self, field: usize) -> String {
        let column = self.columns.get(field);
        column.map_or_else(|| (field + 1).to_string(), |column| column.name().into())
    }

    fn header(&mut self, line: u64, record: &ByteRecord) -> Result<(), BadInput> {
        for (number, name) in record.iter().enumerate() {
            if name.is_empty() {
                return Err(self.in_column(line, &self.name(number), "without a name"));
            }
            let Some(column) = Column::from_name(name) else {
                return Err(self.in_column(line, &escape::short(name), "unknown"));
            };
            if self.columns.contains(&column) {
                return Err(self.in_column(line, column.name(), "given twice"));
            }
            self.columns.push(column);
        }
        let has = |column| self.columns.contains(&column);
        if !has(Column::Command) && !has(Column::DurationMs) {
            return Err(self.in_column(line, "command", "missing, and so is duration_ms"));
        }
        Ok(())
    }

    fn row(&mut self, line: u64, record: &ByteRecord) -> Result<Row, BadInput> {
        let (fields, columns) = (record.len(), self.columns.len());
        if fields != columns {
            let why = format!("the row has {fields} fields, the header {columns}");
            return Err(self.in_column(line, &self.name(fields.min(columns)), &why));
        }
        let (mut caller, mut group) = ("", "");
        let mut row = Row {
            line,
            caller: 0,
            tier: 0,
            group: None,
            bump: None,
            arrive_ms: 0,
            duration_ms: 0,
            command: None,
        };
        for (cell, &column) in record.iter().zip(&self.columns) {
            let wrong = |why: &str| self.in_column(line, column.name(), why);
            let text = str::from_utf8(cell).map_err(|_| wrong("not UTF-8"))?;
            if text.is_empty() {
                continue;
            }
            let number = |high| whole(cell, 0, high).map_err(|why| wrong(&why));
            match column {
                Column::Caller => caller = text,
                Column::Group => group = text,
                Column::Tier => row.tier = number(u32::MAX)?,
                Column::Bump => row.bump = Some(number(u8::MAX.into())? as u8),
                Column::ArriveMs => row.arrive_ms = number(u32::MAX)?,
                Column::DurationMs => row.duration_ms = number(u32::MAX)?,
                Column::Command => {
                    // A simulation runs no command, and keeps none.
                    if let Some(longest) = self.longest {
                        runnable(text, longest).map_err(|why| wrong(&why))?;
                        row.command = Some(text.into());
                    }
                }
            }
        }
        let caller = if caller.is_empty() { "main" } else { caller };
        row.caller = number_of(&mut self.callers, caller, || caller.into());
        if !group.is_empty() {
            let key = GroupKey(row.caller, group);
            let number = number_of(&mut self.groups, &key, || (row.caller, group.into()));
            row.group = Some(number);
        }
        Ok(row)
    }
}

/// The number of `key`, assigned on first sight. There are never more names than rows, so 32
/// bits suffice.
fn number_of<T, Q>(known: &mut IndexSet<T>, key: &Q, make: impl FnOnce() -> T) -> u32
where
    T: Hash + Eq,
    Q: ?Sized + Hash + Equivalent<T>,
{
    let found = known.get_index_of(key);
    found.unwrap_or_else(|| known.insert_full(make()).0) as u32
}

fn runnable(text: &str, longest: usize) -> Result<(), String> {
    if text.contains('\0') {
        return Err("a NUL byte, which no command can hold".to_owned());
    }
    if text.len() > longest {
        let length = text.len();
        return Err(format!("{length} bytes, the system takes {longest}"));
    }
    Ok(())
}

/// In order of arrival a group's tasks must not go down in tier: a later task would have to run
/// before one that it waits for.
fn check_tiers(file: &str, list: &TaskList) -> Result<(), BadInput> {
    let mut last: Vec<Option<&Row>> = vec![None; list.groups.len()];
    for number in list.arrivals() {
        let row = &list.rows[number as usize];
        let Some(group) = row.group else { continue };
        if let Some(before) = last[group as usize].replace(row)
            && before.tier > row.tier
        {
            return Err(BadInput(format!(
                "{file}:{}: column tier: group \"{}\" of caller \"{}\" goes down from {} (line {}) to {}",
                row.line,
                escape::short(list.group_of(row).as_bytes()),
                escape::short(list.caller_of(row).as_bytes()),
                before.tier,
                before.line,
                row.tier,
            )));
        }
    }
    Ok(())
}
