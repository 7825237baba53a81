//! Random operations on dialogs, compared with a model of lists: the same answers, events and
//! counts.

mod model;
mod operations;
mod world;

use proptest::prelude::*;

use operations::operations;
use world::World;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn dialogs_do_what_lists_do(operations in operations(), bounded: bool) {
        let mut world = World::new(bounded);
        for operation in &operations {
            world.run(operation);
            world.compare();
        }
        world.finish();
    }
}
