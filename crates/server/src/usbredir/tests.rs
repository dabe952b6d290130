//! Sessions as scripts: bytes of a client in, bytes for the client out, by literal bytes.

mod connect;
pub(crate) mod fixture;
mod property;
mod refusals;
mod transfers;
