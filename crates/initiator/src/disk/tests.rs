//! The disk against a unit in memory, on a transport that carries commands as they are.

mod fixture;
mod identify;
mod property;
mod requests;
mod temperature;
mod unit;
