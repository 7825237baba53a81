//! The costs of decisions: ranks, bumps, and whole turns of the backlog.
//!
//! `cargo bench --bench dispatch --features internals`

use std::hint::black_box;

use conversant::internals::{Backlog, GroupKey};
use conversant::limit::{Bypass, Limit};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const SIZES: [u32; 3] = [1_000, 100_000, 1_000_000];

/// A small generator, so that every run sees the same groups.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % u64::from(bound)) as u32
    }
}

/// `n` groups of random standing levels in one lane, each with two messages.
fn waiting(n: u32, bypass: Bypass) -> (Backlog<u32>, Vec<GroupKey>) {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut backlog = Backlog::new(bypass);
    let lane = backlog.add_lane(1, Limit::Unlimited).expect("in range");
    let groups = (0..n).map(|i| {
        let level = random.below(256) as u8;
        let group = backlog
            .add_group(lane, Limit::SERIAL, level)
            .expect("in range");
        for _ in 0..2 {
            backlog.send(group, None, None, i);
        }
        group
    });
    let groups = groups.collect();
    (backlog, groups)
}

/// One turn: claim, complete, send again.
fn turns(c: &mut Criterion) {
    let mut family = c.benchmark_group("turn");
    family.throughput(Throughput::Elements(1));
    for n in SIZES {
        for (name, bypass) in [
            ("bypass 64", Bypass::AtMost(64)),
            ("by age", Bypass::AtMost(0)),
        ] {
            let (mut backlog, _) = waiting(n, bypass);
            family.bench_function(BenchmarkId::new(name, n), |b| {
                b.iter(|| {
                    let claim = backlog.claim().expect("there is work");
                    let group = claim.holds.group.expect("it is not alone");
                    backlog.finish(claim.holds);
                    backlog.send(group, None, None, claim.item);
                });
            });
        }
    }
    family.finish();
}

/// A bump of a random pending group.
fn bumps(c: &mut Criterion) {
    let mut family = c.benchmark_group("bump");
    family.throughput(Throughput::Elements(1));
    for n in SIZES {
        let (mut backlog, groups) = waiting(n, Bypass::Unbounded);
        let mut random = Random(7);
        family.bench_function(BenchmarkId::from_parameter(n), |b| {
            b.iter(|| {
                let group = groups[random.below(n) as usize];
                black_box(backlog.bump(group, random.below(256) as u8))
            });
        });
    }
    family.finish();
}

criterion_group!(benches, turns, bumps);
criterion_main!(benches);
