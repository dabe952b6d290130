//! The controller under its driver: life, devices, transfers, streams, and what goes wrong or is
//! refused.

mod control;
mod express;
mod faults;
mod lifecycle;
mod rejected_commands;
mod streams;
mod stress;
mod transfers;
