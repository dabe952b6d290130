//! The interface of the driver: start, transfers, requests, interrupts and time.
//!
//! The owner calls the methods below as things happen, takes all outputs from
//! [`Controller::poll_output`] after each, and calls [`Controller::handle_timeout`] at
//! [`Controller::poll_timeout`]. `live` is a running controller, `life` the start sequence.

mod command;
mod endpoints;
mod events;
mod life;
mod live;
mod recovery;
mod renewal;
mod requests;
mod sleep;
#[cfg(test)]
mod tests;

use crate::capabilities::Capabilities;
use crate::hardware::Hardware;
use crate::types::{
    Config, ControlTransfer, Counters, Deadline, Death, DeviceId, Output, Refusal, Request, RequestId,
    Transfer,
};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use bus::{Pipe, TransferId};
use life::Phase;
use live::Live;
use units::Instant;
use wire::xhci::SlotContext;

/// A driver of one controller.
///
/// Always true: each transfer that [`submit`](Self::submit) took completes once; each request that
/// [`request`](Self::request) took is answered once.
#[derive(Debug)]
pub struct Controller {
    config: Config,
    capabilities: Option<Capabilities>,
    phase: Phase,
    live: Option<Box<Live>>,
    /// A controller that failed may write to this memory until it is reset.
    buried: Option<Box<Live>>,
    outputs: VecDeque<Output>,
}

impl Controller {
    /// Creates a driver that has not accessed its controller yet.
    pub fn new(config: Config) -> Self {
        let outputs = VecDeque::new();
        Self { config, capabilities: None, phase: Phase::Off, live: None, buried: None, outputs }
    }

    /// Takes the controller over from firmware, resets and starts it. [`Output::Running`] reports
    /// success, [`Output::Died`] failure. Everything in progress ends.
    pub fn start(&mut self, hw: &mut impl Hardware, now: Instant) {
        self.bury();
        self.begin(hw, now);
    }

    /// Returns the capabilities; `None` before [`start`](Self::start).
    pub fn capabilities(&self) -> Option<&Capabilities> {
        self.capabilities.as_ref()
    }

    /// Returns the counts since the start.
    pub fn counters(&self) -> Counters {
        self.live.as_ref().or(self.buried.as_ref()).map_or(Counters::default(), |live| live.counters)
    }

    /// Submits a transfer. It ends with one [`Output::Completed`].
    ///
    /// # Errors
    ///
    /// A [`Refusal`], without effect.
    pub fn submit(&mut self, hw: &mut impl Hardware, transfer: &Transfer) -> Result<(), Refusal> {
        self.live.as_mut().ok_or(Refusal::Gone)?.submit(hw, transfer)
    }

    /// Submits a control transfer. It ends with one [`Output::Completed`].
    ///
    /// # Errors
    ///
    /// A [`Refusal`], without effect.
    pub fn submit_control(
        &mut self,
        hw: &mut impl Hardware,
        transfer: &ControlTransfer,
    ) -> Result<(), Refusal> {
        self.live.as_mut().ok_or(Refusal::Gone)?.submit_control(hw, transfer)
    }

    /// Cancels a transfer. It still completes once, as cancelled or with its actual status. No
    /// effect if it has completed.
    pub fn cancel(
        &mut self,
        hw: &mut impl Hardware,
        now: Instant,
        device: DeviceId,
        pipe: Pipe,
        id: TransferId,
    ) {
        if let Some(live) = &mut self.live {
            live.cancel(hw, now, device, pipe, id);
        }
    }

    /// Returns the address that the controller assigned to a device (xHCI 1.2 clause 6.2.2, USB
    /// Device Address), as its translator knows it. `None` if there is no such device.
    pub fn address(&mut self, hw: &mut impl Hardware, device: DeviceId) -> Option<u8> {
        let output = self.live.as_mut()?.device(device)?.output;
        let mut bytes = [0; SlotContext::LEN];
        hw.read_bytes(output, &mut bytes);
        SlotContext::decode(&bytes).ok().map(|slot| slot.address)
    }

    /// Submits a request. It ends with one [`Output::Answered`].
    ///
    /// # Errors
    ///
    /// A [`Refusal`], without effect.
    pub fn request(
        &mut self,
        hw: &mut impl Hardware,
        now: Instant,
        id: RequestId,
        request: Request,
    ) -> Result<(), Refusal> {
        let capabilities = self.capabilities.as_ref().ok_or(Refusal::Gone)?;
        let live = self.live.as_mut().ok_or(Refusal::Gone)?;
        live.request(hw, now, capabilities, id, request)
    }

    /// Handles a possible interrupt.
    pub fn handle_interrupt(&mut self, hw: &mut impl Hardware, now: Instant) {
        if let Some(live) = &mut self.live
            && let Some(death) = live.handle_interrupt(hw, now)
        {
            self.die(hw, death);
        }
    }

    /// Handles a [`Deadline`]; no effect before it.
    pub fn handle_timeout(&mut self, hw: &mut impl Hardware, now: Instant) {
        self.wait_on(hw, now);
        if let Some(live) = &mut self.live
            && let Some(death) = live.handle_timeout(hw, now)
        {
            self.die(hw, death);
        }
    }

    /// Returns the next output, oldest first.
    #[inline]
    pub fn poll_output(&mut self) -> Option<Output> {
        if self.outputs.is_empty() { self.live.as_mut()?.poll_output() } else { self.outputs.pop_front() }
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Deadline> {
        let waits = match &self.phase {
            Phase::Waiting(wait) => Some(Deadline { at: wait.poll_at, reason: wait.what }),
            _ => None,
        };
        waits.or_else(|| self.live.as_ref()?.poll_timeout())
    }

    /// Handles a failed controller; everything in progress ends.
    fn die(&mut self, hw: &mut impl Hardware, death: Death) {
        self.halt(hw);
        self.bury();
        self.phase = Phase::Off;
        self.outputs.push_back(Output::Died(death));
    }

    fn bury(&mut self) {
        if let Some(mut live) = self.live.take() {
            live.end_all();
            while let Some(output) = live.poll_output() {
                self.outputs.push_back(output);
            }
            self.buried = Some(live);
        }
    }
}
