//! Sessions as scripts: bytes of a client in, bytes for the client out, by literal bytes.

mod connect;
mod fixture;
mod property;
mod refusals;
mod transfers;
