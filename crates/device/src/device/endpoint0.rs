//! Endpoint 0: the standard and class requests (USB 3.2 clause 9.4, USB 2.0 clause 9.4, Bulk-Only Transport 1.0
//! clause 3).
//!
//! A table in three states: default, addressed, configured. What a request changes outside of this machine (the
//! transport, halts) is returned as an [`Effect`], so that this file has no transfer in it. What is unknown, or asked
//! in a state that does not allow it, stalls.
//!
//! Left out: SET_DESCRIPTOR and SYNCH_FRAME, which a mass-storage device stalls.

use super::config::DeviceConfig;
use super::descriptors::Descriptors;
use crate::bot::BotEndpoints;
use crate::cbi::CbiEndpoints;
use crate::uas::UasEndpoints;
use alloc::vec::Vec;
use bus::{EndpointAddress, Speed};
use wire::bot::ClassRequest;
use wire::cbi::AcceptCommand;
use wire::usb::{
    DeviceFeature, DeviceStatus, Direction, EndpointFeature, EndpointStatus, ExitLatencies, InterfaceFeature,
    InterfaceStatus, Recipient, RequestKind, SetupPacket, StandardRequest, SuspendOptions,
};

/// The highest address that a host may give.
const ADDRESS_MAX: u16 = 127;

/// How a control transfer ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The data stage to the host, at most wLength bytes, then success.
    Data(Vec<u8>),
    /// Success without data.
    Done,
    /// STALL.
    Stall,
}

/// Effect of a request on the rest of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    None,
    /// The alternate setting is this one now; `None` while not configured. Also when it is the same as before.
    Interface(Option<u8>),
    Halt(EndpointAddress),
    ClearHalt(EndpointAddress),
    MassStorageReset,
    /// The command block in the data stage is for the transport, which may still refuse it.
    AcceptCommand,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeviceState {
    Default,
    Addressed,
    Configured { alternate: u8 },
}

#[derive(Debug)]
pub(super) struct Endpoint0 {
    descriptors: Descriptors,
    speed: Speed,
    alternates: u8,
    bot_alternate: Option<u8>,
    bot: BotEndpoints,
    uas: UasEndpoints,
    cbi: Option<CbiEndpoints>,
    /// bConfigurationValue.
    configuration: u8,
    self_powered: bool,
    max_lun: u8,
    state: DeviceState,
    u1_enabled: bool,
    u2_enabled: bool,
}

type Answer = Option<(Verdict, Effect)>;

impl Endpoint0 {
    pub(super) fn new(config: &DeviceConfig, units: u8) -> Self {
        Self {
            descriptors: Descriptors::new(config),
            speed: config.speed,
            alternates: config.alternates(),
            bot_alternate: config.bot_alternate(),
            bot: config.bot_endpoints(),
            uas: config.uas_endpoints(),
            cbi: config.cbi_endpoints(),
            configuration: config.configuration_value(),
            self_powered: config.is_self_powered(),
            max_lun: units.saturating_sub(1),
            state: DeviceState::Default,
            u1_enabled: false,
            u2_enabled: false,
        }
    }

    /// A bus reset, or a new host.
    pub(super) const fn reset(&mut self) {
        self.state = DeviceState::Default;
        self.u1_enabled = false;
        self.u2_enabled = false;
    }

    pub(super) const fn configuration(&self) -> u8 {
        match self.state {
            DeviceState::Configured { .. } => self.configuration,
            _ => 0,
        }
    }

    pub(super) const fn alternate(&self) -> u8 {
        match self.state {
            DeviceState::Configured { alternate } => alternate,
            _ => 0,
        }
    }

    /// Answers one request.
    pub(super) fn handle(
        &mut self,
        setup: &SetupPacket,
        data_out: &[u8],
        halted: &[EndpointAddress],
    ) -> (Verdict, Effect) {
        let answer = match (setup.kind, setup.standard()) {
            (RequestKind::Class, _) if self.cbi.is_some() => self.handle_command(setup, data_out),
            (RequestKind::Class, _) => self.handle_class(setup),
            (RequestKind::Standard, Some(request)) => match setup.direction {
                Direction::In => self.read(request, setup, halted),
                Direction::Out => self.write(request, setup, data_out),
            },
            _ => None,
        };
        let (mut verdict, effect) = answer.unwrap_or((Verdict::Stall, Effect::None));
        if let Verdict::Data(bytes) = &mut verdict {
            bytes.truncate(setup.length.into());
        }
        (verdict, effect)
    }

    fn handle_class(&mut self, setup: &SetupPacket) -> Answer {
        let DeviceState::Configured { alternate } = self.state else { return None };
        if self.bot_alternate != Some(alternate) {
            return None;
        }
        match ClassRequest::decode(setup).ok()? {
            ClassRequest::GetMaxLun { interface: 0 } => data_stage(&[self.max_lun]),
            ClassRequest::MassStorageReset { interface: 0 } => done(Effect::MassStorageReset),
            _ => None,
        }
    }

    /// Accept Device-Specific Command (CBI Transport 1.1 clause 2.1).
    fn handle_command(&self, setup: &SetupPacket, block: &[u8]) -> Answer {
        let is_configured = matches!(self.state, DeviceState::Configured { .. });
        let request = AcceptCommand::decode(setup).ok()?;
        let is_whole = usize::from(request.length) == block.len();
        (is_configured && request.interface == 0 && is_whole)
            .then_some((Verdict::Done, Effect::AcceptCommand))
    }

    fn read(&self, request: StandardRequest, setup: &SetupPacket, halted: &[EndpointAddress]) -> Answer {
        match request {
            StandardRequest::GetDescriptor if setup.recipient == Recipient::Device => {
                let (kind, index) = setup.descriptor();
                data_stage(self.descriptors.find(kind, index)?)
            }
            StandardRequest::GetConfiguration
                if setup.recipient == Recipient::Device && self.state != DeviceState::Default =>
            {
                data_stage(&[self.configuration()])
            }
            StandardRequest::GetInterface if setup.recipient == Recipient::Interface => match self.state {
                DeviceState::Configured { alternate } if setup.interface() == 0 => data_stage(&[alternate]),
                _ => None,
            },
            StandardRequest::GetStatus => self.status(setup, halted),
            _ => None,
        }
    }

    fn status(&self, setup: &SetupPacket, halted: &[EndpointAddress]) -> Answer {
        let configured = matches!(self.state, DeviceState::Configured { .. });
        match setup.recipient {
            Recipient::Device if self.state != DeviceState::Default => data_stage(
                &DeviceStatus {
                    self_powered: self.self_powered,
                    remote_wakeup: false,
                    u1_enabled: self.u1_enabled,
                    u2_enabled: self.u2_enabled,
                    ltm_enabled: false,
                }
                .encode(),
            ),
            Recipient::Interface if configured && setup.interface() == 0 => data_stage(
                &InterfaceStatus { remote_wake_capable: false, remote_wake_enabled: false }.encode(),
            ),
            Recipient::Endpoint => {
                let endpoint = self.known_endpoint(setup)?;
                data_stage(&EndpointStatus { halted: halted.contains(&endpoint) }.encode())
            }
            _ => None,
        }
    }

    fn write(&mut self, request: StandardRequest, setup: &SetupPacket, data_out: &[u8]) -> Answer {
        let (default, configured) =
            (self.state == DeviceState::Default, matches!(self.state, DeviceState::Configured { .. }));
        match (request, setup.recipient) {
            (StandardRequest::SetAddress, Recipient::Device) if setup.value <= ADDRESS_MAX && !configured => {
                self.state = if setup.value == 0 { DeviceState::Default } else { DeviceState::Addressed };
                done(Effect::None)
            }
            (StandardRequest::SetConfiguration, Recipient::Device) if !default => {
                self.set_configuration(setup.value)
            }
            (StandardRequest::SetInterface, Recipient::Interface) if configured && setup.index == 0 => {
                let alternate = u8::try_from(setup.value).ok().filter(|&a| a < self.alternates)?;
                self.state = DeviceState::Configured { alternate };
                done(Effect::Interface(Some(alternate)))
            }
            (StandardRequest::SetFeature, _) => self.set_feature(setup, true),
            (StandardRequest::ClearFeature, _) => self.set_feature(setup, false),
            (StandardRequest::SetSel, Recipient::Device)
                if self.speed == Speed::Super && !default && data_out.len() == ExitLatencies::LEN =>
            {
                done(Effect::None)
            }
            (StandardRequest::SetIsochDelay, Recipient::Device) if self.speed == Speed::Super => {
                done(Effect::None)
            }
            _ => None,
        }
    }

    fn set_configuration(&mut self, value: u16) -> Answer {
        match value {
            0 => {
                self.state = DeviceState::Addressed;
                done(Effect::Interface(None))
            }
            value if value == u16::from(self.configuration) => {
                self.state = DeviceState::Configured { alternate: 0 };
                done(Effect::Interface(Some(0)))
            }
            _ => None,
        }
    }

    fn set_feature(&mut self, setup: &SetupPacket, on: bool) -> Answer {
        let configured = matches!(self.state, DeviceState::Configured { .. });
        match setup.recipient {
            Recipient::Device => {
                let enabled = match DeviceFeature::from(setup.value) {
                    DeviceFeature::U1Enable => &mut self.u1_enabled,
                    DeviceFeature::U2Enable => &mut self.u2_enabled,
                    // Remote wake-up is not offered; test modes are the hub's business at these speeds.
                    _ => return None,
                };
                if !configured || self.speed != Speed::Super {
                    return None;
                }
                *enabled = on;
                done(Effect::None)
            }
            Recipient::Interface => {
                let suspend = InterfaceFeature::from(setup.value) == InterfaceFeature::FunctionSuspend
                    && !SuspendOptions::from_index(setup.index).remote_wake;
                (suspend && configured && self.speed == Speed::Super && setup.interface() == 0)
                    .then_some((Verdict::Done, Effect::None))
            }
            Recipient::Endpoint => {
                let endpoint = self.known_endpoint(setup)?;
                if EndpointFeature::from(setup.value) != EndpointFeature::Halt {
                    return None;
                }
                match (endpoint.number(), on) {
                    // Endpoint 0 recovers by itself at the next setup packet.
                    (0, _) => done(Effect::None),
                    (_, true) => done(Effect::Halt(endpoint)),
                    (_, false) => done(Effect::ClearHalt(endpoint)),
                }
            }
            _ => None,
        }
    }

    /// The endpoint that a request is for, if the alternate setting has it. Endpoint 0 always exists.
    fn known_endpoint(&self, setup: &SetupPacket) -> Option<EndpointAddress> {
        let endpoint = setup.endpoint().ok()?;
        let exists = match self.state {
            DeviceState::Default => false,
            _ if endpoint.number() == 0 => true,
            DeviceState::Addressed => false,
            DeviceState::Configured { alternate } if self.bot_alternate == Some(alternate) => {
                [self.bot.bulk_in, self.bot.bulk_out].contains(&endpoint)
            }
            DeviceState::Configured { .. } if let Some(cbi) = self.cbi => {
                [Some(cbi.bulk_in), Some(cbi.bulk_out), cbi.interrupt].contains(&Some(endpoint))
            }
            DeviceState::Configured { .. } => {
                let UasEndpoints { command, status, data_in, data_out } = self.uas;
                [data_in, data_out, status, command].contains(&endpoint)
            }
        };
        exists.then_some(endpoint)
    }
}

fn data_stage(bytes: &[u8]) -> Answer {
    Some((Verdict::Data(bytes.to_vec()), Effect::None))
}

const fn done(effect: Effect) -> Answer {
    Some((Verdict::Done, effect))
}
