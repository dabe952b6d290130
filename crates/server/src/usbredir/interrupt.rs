//! Interrupt packets: the server polls the endpoint for the client, from start to stop (usbredir 0.7).
//!
//! One transfer is outstanding while the client receives; each packet that ends it is passed on, and the next transfer
//! follows at once. Left out: interrupt OUT endpoints, which no drive has.

use super::{Exported, Fault, Session};
use bus::{Pipe, TransferStatus};
use drive::{Body, HostCompletion, HostTransfer};
use wire::cbi::StatusBlock;
use wire::usbredir::{InterruptPacket, InterruptReceivingStatus, Status};

/// Id of the server's own transfer. Completions are distinguished by endpoint, so a client may use it as well.
const TRANSFER_ID: u64 = u64::MAX;
/// Id of packets that answer none: a client does not look at it.
const PACKET_ID: u64 = 0;

impl Session {
    /// Starts to receive.
    pub(super) fn start_interrupts(
        &mut self,
        id: u64,
        endpoint: u8,
        device: &mut impl Exported,
    ) -> Result<(), Fault> {
        let Some(pipe) = self.layout.interrupt_pipe(endpoint) else {
            self.send(id, InterruptReceivingStatus { status: Status::Invalid, endpoint });
            return Ok(());
        };
        // The status goes first: a client drops packets of an endpoint that it does not receive from.
        self.send(id, InterruptReceivingStatus { status: Status::Success, endpoint });
        self.layout.used = true;
        if !std::mem::replace(&mut self.layout.receives, true) {
            poll_interrupt(pipe, device)?;
        }
        Ok(())
    }

    /// Stops to receive.
    pub(super) fn stop_interrupts(&mut self, id: u64, endpoint: u8, device: &mut impl Exported) {
        let Some(pipe) = self.layout.interrupt_pipe(endpoint) else {
            return self.send(id, InterruptReceivingStatus { status: Status::Invalid, endpoint });
        };
        self.layout.receives = false;
        device.cancel_at(pipe.endpoint);
        self.collect(device);
        self.send(id, InterruptReceivingStatus { status: Status::Success, endpoint });
    }

    /// Passes on a packet and waits for the next one.
    pub(super) fn answer_interrupt(&mut self, completion: HostCompletion, device: &mut impl Exported) {
        let HostCompletion { pipe, status, actual, body, .. } = completion;
        let endpoint = pipe.endpoint.into();
        let status = match status {
            TransferStatus::Done | TransferStatus::Short => Status::Success,
            TransferStatus::Stall => Status::Stall,
            // The client has stopped, or the endpoint is gone with its setting.
            TransferStatus::Cancelled => return,
            TransferStatus::Babble => Status::Babble,
            TransferStatus::Disconnected | TransferStatus::Error => Status::IoError,
        };
        if !self.layout.receives {
            return;
        }
        if status == Status::Success {
            let bytes = match &body {
                Body::Inline(inline) => inline.as_bytes(),
                Body::Buffer(buffer) => buffer,
                Body::Empty => &[],
            };
            let bytes = bytes.get(..actual as usize).unwrap_or_default();
            let packet = InterruptPacket { endpoint, status, length: bytes.len() as u16 };
            self.send_with(PACKET_ID, packet, bytes);
        }
        if let Body::Buffer(buffer) = body {
            device.pool().put(buffer);
        }
        let status = match status {
            Status::Success if poll_interrupt(pipe, device).is_ok() => return,
            Status::Success => Status::IoError,
            other => other,
        };
        self.layout.receives = false;
        self.send(PACKET_ID, InterruptReceivingStatus { status, endpoint });
    }
}

/// Whether a completion is one of an interrupt endpoint, of this setting or the one before.
pub(super) fn is_interrupt(completion: &HostCompletion, device: &impl Exported) -> bool {
    let endpoints = device.device().config().cbi_endpoints();
    endpoints.is_some_and(|endpoints| endpoints.interrupt == Some(completion.pipe.endpoint))
}

/// Waits for the next packet.
fn poll_interrupt(pipe: Pipe, device: &mut impl Exported) -> Result<(), Fault> {
    let transfer =
        HostTransfer { id: TRANSFER_ID, pipe, length: StatusBlock::LEN as u32, payload: Vec::new() };
    device.submit(transfer).map_err(|_| Fault::TooManyTransfers)
}
