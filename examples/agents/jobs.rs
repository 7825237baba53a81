//! The jobs: read from a file, or made up and written to one first.

use std::error::Error;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::Options;

/// One row of the file.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Row {
    /// Smaller ones first.
    pub(crate) key: u64,
    pub(crate) tenant: String,
    /// Jobs of one group of a tenant are limited together; empty: no group.
    pub(crate) group: String,
}

pub(crate) fn load(options: &Options) -> Result<Vec<Row>, Box<dyn Error>> {
    if let Some(file) = &options.file {
        return read(file);
    }
    if let Some(file) = &options.save {
        write(file, options.jobs)?;
        return read(file);
    }
    let file = tempfile::NamedTempFile::new()?;
    write(file.path(), options.jobs)?;
    read(file.path())
}

fn read(file: &Path) -> Result<Vec<Row>, Box<dyn Error>> {
    let named = |error: csv::Error| format!("{}: {error}", file.display());
    let mut reader = csv::Reader::from_path(file).map_err(named)?;
    let rows = reader.deserialize().collect::<Result<_, _>>();
    Ok(rows.map_err(named)?)
}

/// Two tenants, the second with a fifth of the jobs. Four jobs in five are in one of a thousand
/// groups, some of which are much busier than others.
fn write(file: &Path, jobs: u32) -> Result<(), Box<dyn Error>> {
    let mut writer = csv::Writer::from_path(file)?;
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    for key in 0..u64::from(jobs) {
        let tenant = if draw(5) == 0 { "small" } else { "large" };
        let group = match (draw(5), draw(1_000)) {
            (0, _) => String::new(),
            (_, number) => format!("group {}", number * number / 1_000),
        };
        writer.serialize(Row {
            // A tenth of them are urgent.
            key: if draw(10) == 0 { key / 2 } else { key },
            tenant: tenant.into(),
            group,
        })?;
    }
    Ok(writer.flush()?)
}
