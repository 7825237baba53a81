//! A queue beside a naive model of it, through random scripts for one thread.

mod look;
mod model;
mod pair;
#[path = "../support/random.rs"]
mod random;
mod script;
mod sends;
mod waits;
mod weights;
mod work;

use conversant::limit::Bypass;

use model::UNLIMITED;
use script::{Shape, check};
use weights::*;

const COMMON: Shape = Shape {
    name: "common",
    groups: 6,
    lanes: &[(1, UNLIMITED), (2, 2)],
    levels: &[100, 0, 255, 7],
    limits: &[1, 2, UNLIMITED],
    quantum: 3,
    bypass: Bypass::AtMost(2),
    attempts: 3,
    back_off: 1,
    capacity: UNLIMITED,
    weights: ALL,
};

/// Plays scripts, fewer with many groups; `CONVERSANT_MODEL=20` plays 20 times as many.
fn run(shape: &Shape, steps: usize) {
    let times = std::env::var("CONVERSANT_MODEL");
    let times: u64 = times.map_or(1, |n| n.parse().expect("a number"));
    let scripts = times * (160 / shape.groups as u64).max(1);
    (0..scripts).for_each(|seed| check(shape, seed, steps));
}

#[test]
fn common() {
    run(&COMMON, 300);
}

#[test]
fn plain() {
    let lanes = &[(1, UNLIMITED)];
    run(
        &Shape {
            name: "plain",
            lanes,
            levels: &[100],
            limits: &[1],
            ..COMMON
        },
        300,
    );
}

const FEW: Shape = Shape {
    name: "few groups, many levels",
    groups: 7,
    lanes: &[(1, UNLIMITED)],
    levels: &[100, 0, 255, 7, 64, 63, 128, 191, 192, 1],
    limits: &[1],
    bypass: Bypass::AtMost(3),
    weights: RANKS,
    ..COMMON
};

#[test]
fn few_groups_of_many_levels() {
    run(&FEW, 400);
}

#[test]
fn levels_that_come_and_go() {
    run(
        &Shape {
            name: "come and go",
            levels: &[100, 100, 100, 7, 200],
            groups: 12,
            ..FEW
        },
        400,
    );
}

#[test]
fn many_groups() {
    let shape = Shape {
        name: "many groups",
        groups: 90,
        levels: &[100, 7, 200],
        ..FEW
    };
    run(&shape, 1000);
}

#[test]
fn many_groups_of_one_level() {
    let shape = Shape {
        name: "one level",
        groups: 90,
        levels: &[100],
        ..FEW
    };
    run(&shape, 1000);
}

#[test]
fn bypass_of_0() {
    run(
        &Shape {
            name: "bypass 0",
            bypass: Bypass::AtMost(0),
            groups: 12,
            ..FEW
        },
        400,
    );
}

#[test]
fn bypass_of_1() {
    run(
        &Shape {
            name: "bypass 1",
            bypass: Bypass::AtMost(1),
            groups: 12,
            ..FEW
        },
        400,
    );
}

#[test]
fn no_bound() {
    run(
        &Shape {
            name: "no bound",
            bypass: Bypass::Unbounded,
            groups: 12,
            ..FEW
        },
        400,
    );
}

#[test]
fn bumps() {
    run(
        &Shape {
            name: "bumps",
            groups: 10,
            weights: BUMPS,
            ..FEW
        },
        400,
    );
}

#[test]
fn bumps_in_lanes() {
    let lanes = &[(1, UNLIMITED), (3, 2), (2, 1)];
    run(
        &Shape {
            name: "bumps in lanes",
            lanes,
            groups: 15,
            weights: BUMPS,
            ..FEW
        },
        400,
    );
}

#[test]
fn caps_of_1() {
    run(
        &Shape {
            name: "caps of 1",
            lanes: &[(1, 1), (3, 1), (2, 1)],
            groups: 9,
            ..COMMON
        },
        400,
    );
}

#[test]
fn failures() {
    run(
        &Shape {
            name: "failures",
            attempts: 2,
            weights: FAILURES,
            ..COMMON
        },
        400,
    );
}

#[test]
fn failures_without_back_off() {
    let shape = Shape {
        name: "no back-off",
        attempts: 4,
        back_off: 0,
        quantum: 9,
        ..COMMON
    };
    run(
        &Shape {
            weights: FAILURES,
            ..shape
        },
        400,
    );
}

#[test]
fn waits() {
    run(
        &Shape {
            name: "waits",
            weights: WAITS,
            ..COMMON
        },
        400,
    );
}

#[test]
fn waits_in_lanes() {
    let lanes = &[(1, 1), (2, 2), (1, UNLIMITED)];
    run(
        &Shape {
            name: "waits in lanes",
            lanes,
            weights: WAITS,
            ..COMMON
        },
        400,
    );
}

#[test]
fn capacities() {
    run(
        &Shape {
            name: "capacities",
            capacity: 9,
            weights: CAPACITIES,
            ..COMMON
        },
        400,
    );
}

#[test]
fn closing() {
    run(
        &Shape {
            name: "closing",
            attempts: 2,
            weights: CLOSING,
            ..COMMON
        },
        300,
    );
}

#[test]
fn tiers() {
    let lanes = &[(1, UNLIMITED), (2, 2)];
    run(
        &Shape {
            name: "tiers",
            lanes,
            attempts: 2,
            weights: TIERS,
            ..COMMON
        },
        400,
    );
}

#[test]
fn a_crowd() {
    let levels = &[100, 100, 100, 100, 100, 7, 200];
    let shape = Shape {
        name: "crowd",
        groups: 400,
        levels,
        bypass: Bypass::AtMost(20),
        ..FEW
    };
    run(&shape, 500);
}
