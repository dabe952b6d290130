//! The controller under its driver: life, devices, transfers, streams, and what goes wrong.

mod control;
mod life;
mod storm;
mod streams;
mod transfers;
