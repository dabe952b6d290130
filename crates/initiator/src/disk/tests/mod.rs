//! The disk against a unit in memory, on a transport that carries commands as they are.

mod property;
mod requests;
mod stand;
mod survey;
mod temperature;
mod unit;
