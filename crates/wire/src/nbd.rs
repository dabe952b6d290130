//! The network block device protocol, NBD (doc/proto.md of NetworkBlockDevice/nbd): blocks of another machine.
//!
//! The *server* has an export, the *client* reads and writes it. Fixed newstyle negotiation: a [`ServerHello`] and the client's
//! flags, then options ([`OptionHeader`], [`OptionReply`]) until [`OptionCode::Go`] is acknowledged. Then requests and replies,
//! in any order. All fields are big-endian.
//!
//! ```text
//!   server ── ServerHello ──► client ── ClientFlags, OptionHeader + data ──► server
//!   server ── OptionReply + data ──► client          (until GO is acknowledged)
//!   client ── Request [+ payload] ──► server
//!   server ── SimpleReply [+ payload] │ ChunkHeader + payload … ──► client
//! ```
//!
//! Payload of reads and writes stays the caller's. Left out: oldstyle negotiation, the content of TLS, extended headers
//! (option 11), resizing.
//!
//! Always true: a header that decodes has a length within its limit here, so that nothing is sized by a peer.

mod chunk;
mod codes;
mod detail;
mod hello;
mod meta_context;
mod option;
mod reply;
mod request;

pub use chunk::{BlockStatus, ChunkError, ChunkFlags, ChunkHeader, ChunkKind, Hole, Statuses};
pub use codes::{Command, ErrorCode, OptionCode, OptionReplyKind};
pub use detail::{BlockSizes, DetailKind, ExportDetail, ExportInfo, Go, TransmissionFlags};
pub use hello::{ClientFlags, HandshakeFlags, ServerHello};
pub use meta_context::{MetaContext, SetMetaContext};
pub use option::{OptionHeader, OptionReply};
pub use reply::{ReplyMagic, SimpleReply};
pub use request::{CommandFlags, Request};

/// Bytes of a string at most: an export's name, a query, a message (proto.md, "String encoding").
pub const STRING_LEN_MAX: usize = 4096;
/// Bytes of data of one option reply that are accepted: a string with what surrounds it.
pub const OPTION_REPLY_LEN_MAX: u32 = STRING_LEN_MAX as u32 + 64;
/// Bytes of payload of a read or write that every server takes, where it announces no other limit (proto.md, "Block size
/// constraints").
pub const PAYLOAD_LEN_MAX: u32 = 32 << 20;
/// Bytes of one chunk of a structured reply that are accepted: a payload with its offset.
pub const CHUNK_LEN_MAX: u32 = PAYLOAD_LEN_MAX + 8;
/// Name of the metadata context that says what has space and what reads as zero (proto.md, "`base:` metadata context").
pub const BASE_ALLOCATION: &str = "base:allocation";
