//! A list of thirty drives takes less than 50 ms.

use std::time::{Duration, Instant};
use uaskit_inspect::inventory::{Inventory, Scope};
use uaskit_inspect::tree::{Tree, expand};

#[path = "../examples/thirty_drives/text.rs"]
mod thirty_drives;

const LIMIT: Duration = Duration::from_millis(50);

#[test]
fn thirty_drives_are_read_within_the_limit() {
    let place = tempfile::tempdir().expect("a temporary directory");
    expand(&thirty_drives::text(), place.path()).expect("a tree");
    let tree = Tree::at(place.path());
    // The quickest of many: other programs may run beside this one.
    let times = (0..20).map(|_| {
        let begun = Instant::now();
        let inventory = Inventory::read(&tree, Scope::Brief);
        assert!(inventory.storage().count() >= thirty_drives::DRIVES);
        begun.elapsed()
    });
    let quickest = times.min().expect("twenty of them");
    println!("{quickest:?}");
    assert!(quickest < LIMIT, "{quickest:?}");
}
