//! The `uaskit` command.
fn main() {}
