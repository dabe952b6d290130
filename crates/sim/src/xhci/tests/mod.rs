//! The controller under its driver: life, devices, transfers, streams, and what goes wrong or is refused.

mod control;
mod express;
mod life;
mod refusals;
mod storm;
mod streams;
mod transfers;
