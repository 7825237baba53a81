//! A simulation of `nightly.csv` gives the same bytes as the first version of the crate. The
//! files are from that version's commit `7f65732`.

use std::fs;

use crate::taskrun_cli::place::Place;

const LIST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/nightly.csv");

/// What was recorded under this name.
fn recorded(name: &str) -> String {
    let path = format!(
        "{}/tests/data/first_version/{name}",
        env!("CARGO_MANIFEST_DIR")
    );
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn a_simulation_gives_the_same_bytes_as_the_first_version() {
    let place = Place::with(fs::read(LIST).expect("an example"));
    let options = "--readers=3 --bypass=3 --cap=2 --weight=web=2 --log=log.csv --trace=trace.json";
    let arguments = ["list.csv", "--simulate"].into_iter();
    let seen = place.run(arguments.chain(options.split(' ')));
    assert_eq!((seen.code, seen.stderr.as_str()), (Some(0), ""));
    assert_eq!(seen.stdout, recorded("shown.txt"));
    for name in ["log.csv", "trace.json"] {
        assert_eq!(place.read(name), recorded(name), "{name}");
    }
}
