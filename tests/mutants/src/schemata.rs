//! All forms of each changed function in one source, selected by a number that is read at run time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};

use anyhow::{Context, Result};
use rayon::prelude::*;

use crate::bodies::{Body, Kind, bodies};
use crate::tree::{Files, Tree};

/// Selects the form of each function that runs.
pub const VARIABLE: &str = "CONVERSANT_MUTANT";

/// The module that reads the number, in the crate's root.
const SWITCH: &str = r#"
#[doc(hidden)]
pub mod mutant {
    pub fn number() -> usize {
        static NUMBER: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
        *NUMBER.get_or_init(|| {
            let said = std::env::var("VARIABLE");
            said.map_or(0, |said| said.parse().expect("a number"))
        })
    }
    #[derive(Clone, Debug)]
    pub enum Form<A, B> {
        This(A),
        Later(B),
    }
    impl<A: Iterator, B: Iterator<Item = A::Item>> Iterator for Form<A, B> {
        type Item = A::Item;
        fn next(&mut self) -> Option<A::Item> {
            match self {
                Self::This(this) => this.next(),
                Self::Later(later) => later.next(),
            }
        }
    }
}
"#;

const ROOT: &str = "src/lib.rs";

/// A crate over this one, which is a module of the tests of models and schedules.
const EXAMPLE: &str = "examples/model_checked/src/";

/// Why a variant has to be built alone.
#[derive(Debug, PartialEq, Eq)]
pub enum Alone {
    /// It changes more than bodies of functions, or files of another crate.
    MoreThanBodies,
    /// The body of a `const fn`, or of a function that returns an unnamed type other than just an
    /// iterator.
    FixedBody,
}

impl fmt::Display for Alone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MoreThanBodies => "it changes more than bodies of functions",
            Self::FixedBody => "a body that cannot be chosen at run time",
        })
    }
}

/// The variants that go into one tree.
pub struct Schemata {
    /// The files that the variants change.
    sources: BTreeMap<String, Source>,
    numbers: BTreeSet<usize>,
    files: BTreeMap<String, Forms>,
}

/// A file before the changes.
struct Source {
    text: String,
    bodies: Vec<Body>,
}

/// The changed bodies of a variant, by file and place.
pub struct Changes(Vec<(String, Vec<(usize, String)>)>);

/// The changed bodies of a file's functions, by place.
type Forms = BTreeMap<usize, Vec<Form>>;

/// A body of one variant.
struct Form {
    number: usize,
    body: String,
    /// The configuration in which it is compiled: that of the package whose test must fail.
    cfg: &'static str,
}

impl Schemata {
    /// Without variants yet, for variants of these files.
    pub fn of(tree: &Tree, files: BTreeSet<&str>) -> Result<Self> {
        let files = files.into_par_iter();
        let sources = files.filter(|file| crate_name(file).is_some());
        // A missing file is reported for each patch that changes it.
        let texts = sources.filter_map(|file| Some((file.to_owned(), tree.read(file).ok()?)));
        let sources = texts.map(|(file, text)| {
            let source = Source::of(text).with_context(|| file.clone())?;
            Ok((file, source))
        });
        Ok(Self {
            sources: sources.collect::<Result<_>>()?,
            numbers: BTreeSet::new(),
            files: BTreeMap::new(),
        })
    }

    /// The bodies that a variant changes, or why it must be built alone.
    pub fn changes(&self, files: &Files) -> Result<Result<Changes, Alone>> {
        let mut all = Vec::new();
        for (file, broken) in files {
            let Some(source) = self.sources.get(file) else {
                return Ok(Err(Alone::MoreThanBodies));
            };
            match source.changes(broken).with_context(|| file.clone())? {
                Ok(changes) => all.push((file.clone(), changes)),
                Err(why) => return Ok(Err(why)),
            }
        }
        Ok(Ok(Changes(all)))
    }

    /// Adds a variant.
    pub fn add(&mut self, number: usize, package: &str, changes: Changes) {
        let cfg = cfg(package);
        for (file, changes) in changes.0 {
            let forms = self.files.entry(file).or_default();
            for (place, body) in changes {
                let form = Form { number, body, cfg };
                forms.entry(place).or_default().push(form);
            }
        }
        self.numbers.insert(number);
    }

    pub fn numbers(&self) -> impl Iterator<Item = usize> {
        self.numbers.iter().copied()
    }

    /// The files with all forms.
    pub fn files(&self, tree: &Tree) -> Result<Files> {
        let mut files = Files::new();
        for (file, forms) in &self.files {
            let name = crate_name(file).context("no source")?;
            files.insert(file.clone(), self.sources[file].combined(forms, name)?);
        }
        let root = match files.remove(ROOT) {
            Some(root) => root,
            None => tree.read(ROOT)?,
        };
        files.insert(ROOT.into(), root + &SWITCH.replace("VARIABLE", VARIABLE));
        Ok(files)
    }
}

/// The name of the crate in a file, if the file is compiled with the crate.
fn crate_name(file: &str) -> Option<&'static str> {
    if file.starts_with("src/") {
        Some("crate")
    } else if file.starts_with(EXAMPLE) {
        Some("conversant")
    } else {
        None
    }
}

/// The configuration of the models and schedules, which compile the crate's sources too.
fn cfg(package: &str) -> &'static str {
    match package {
        "conversant-models" => "loom",
        "conversant-schedules" => "shuttle",
        _ => "not(any(loom, shuttle))",
    }
}

impl Source {
    fn of(text: String) -> Result<Self> {
        let bodies = bodies(&text)?;
        Ok(Self { text, bodies })
    }

    /// The bodies that differ, by place, if nothing else does.
    fn changes(&self, broken: &str) -> Result<Result<Vec<(usize, String)>, Alone>> {
        let theirs = bodies(broken)?;
        if between(&self.text, &self.bodies) != between(broken, &theirs) {
            return Ok(Err(Alone::MoreThanBodies));
        }
        let mut changes = Vec::new();
        for (place, (our, their)) in self.bodies.iter().zip(&theirs).enumerate() {
            let body = &broken[their.range.clone()];
            if self.text[our.range.clone()] == *body {
                continue;
            }
            if our.kind == Kind::Fixed {
                return Ok(Err(Alone::FixedBody));
            }
            changes.push((place, body.to_owned()));
        }
        Ok(Ok(changes))
    }

    fn combined(&self, forms: &Forms, name: &str) -> Result<String> {
        let text = &self.text;
        let mut out = String::new();
        let mut at = 0;
        for (place, forms) in forms {
            let Body { range, kind } = &self.bodies[*place];
            out += &text[at..range.start];
            writeln!(out, "{{ match {name}::mutant::number() {{")?;
            let iterator = *kind == Kind::Iterator;
            let arm = |nth: usize, body: &str| match iterator {
                true => of_iterator(nth, forms.len(), body),
                false => body.to_owned(),
            };
            for (nth, form) in forms.iter().enumerate() {
                if !iterator {
                    writeln!(out, "#[cfg({})]", form.cfg)?;
                }
                writeln!(out, "{} => {},", form.number, arm(nth, &form.body))?;
            }
            write!(out, "_ => {} }} }}", arm(forms.len(), &text[range.clone()]))?;
            at = range.end;
        }
        Ok(out + &text[at..])
    }
}

/// The text outside of the bodies.
fn between<'a>(text: &'a str, bodies: &[Body]) -> Vec<&'a str> {
    let ends = bodies.iter().map(|body| body.range.end);
    let starts = bodies.iter().map(|body| body.range.start);
    let gaps = std::iter::once(0)
        .chain(ends)
        .zip(starts.chain([text.len()]));
    gaps.map(|(from, to)| &text[from..to]).collect()
}

/// One form of an iterator. Each form has a type of its own, so all are compiled in every
/// configuration.
fn of_iterator(nth: usize, last: usize, body: &str) -> String {
    let later = "crate::mutant::Form::Later(".repeat(nth);
    let form = match nth < last {
        true => format!("crate::mutant::Form::This({body})"),
        false => body.to_owned(),
    };
    later + &form + &")".repeat(nth)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: &str =
        "const A: u8 = 1;\nfn f() -> u8 { A }\nimpl X { const fn g() -> u8 { 2 } }\n";

    /// The forms of the first function, numbered from `first` on.
    fn forms(first: usize, bodies: &[&str]) -> Forms {
        let numbered = bodies.iter().zip(first..);
        let forms = numbered.map(|(body, number)| Form {
            number,
            body: body.to_string(),
            cfg: "loom",
        });
        Forms::from([(0, forms.collect())])
    }

    fn changes(sound: &str, broken: &str) -> Result<Vec<(usize, String)>, Alone> {
        source(sound).changes(broken).unwrap()
    }

    fn source(text: &str) -> Source {
        Source::of(text.to_owned()).unwrap()
    }

    #[test]
    fn bodies_are_combined() {
        let broken = SOUND.replace("{ A }", "{ 7 }");
        let changed = changes(SOUND, &broken).unwrap();
        assert_eq!(changed, [(0, "{ 7 }".to_owned())]);
        let combined = source(SOUND).combined(&forms(5, &["{ 7 }"]), "crate");
        let number = "{ match crate::mutant::number() {\n";
        let body = format!("{number}#[cfg(loom)]\n5 => {{ 7 }},\n_ => {{ A }} }} }}");
        assert_eq!(combined.unwrap(), SOUND.replace("{ A }", &body));
    }

    #[test]
    fn the_forms_of_an_iterator_are_of_one_type() {
        let sound = "fn f() -> impl Iterator<Item = u8> + Clone { once(1) }\n";
        let bodies = ["{ empty() }", "{ repeat(1) }"];
        let broken = sound.replace("{ once(1) }", bodies[0]);
        let changed = changes(sound, &broken).unwrap();
        assert_eq!(changed, [(0, bodies[0].to_owned())]);
        let text = source(sound).combined(&forms(5, &bodies), "crate").unwrap();
        let text = text.replace("crate::mutant::Form::", "");
        assert!(text.contains("\n5 => This({ empty() }),\n6 => Later(This({ repeat(1) })),\n"));
        assert!(
            text.contains("\n_ => Later(Later({ once(1) })) } }"),
            "{text}"
        );
    }

    #[test]
    fn what_cannot_be_chosen_at_run_time_is_built_alone() {
        let constant = SOUND.replace("= 1", "= 2");
        assert_eq!(changes(SOUND, &constant), Err(Alone::MoreThanBodies));
        let fixed = SOUND.replace("{ 2 }", "{ 3 }");
        assert_eq!(changes(SOUND, &fixed), Err(Alone::FixedBody));
        let unnamed = "fn f() -> Option<impl Copy> { Some(1) }\n";
        let broken = unnamed.replace('1', "2");
        assert_eq!(changes(unnamed, &broken), Err(Alone::FixedBody));
        let more = "fn f() -> impl Iterator<Item = u8> + Debug { once(1) }\n";
        let broken = more.replace('1', "2");
        assert_eq!(changes(more, &broken), Err(Alone::FixedBody));
    }
}
