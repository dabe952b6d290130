//! Which endpoint is what: from the configuration descriptor and the setting that the host chose, or from what is in the transfers.
//!
//! A capture that begins after a device was plugged in has no descriptors. Then a command wrapper or a command information unit says
//! what the endpoint under it is, and the others follow. What descriptors say of a setting that was not seen chosen is a guess,
//! which such a unit can overturn.

use crate::cbi::CbiInterface;
use crate::event::{Event, TransferKind};
use quirks::configuration::{Configuration, Setting};
use wire::bot::{Cbw, Csw};
use wire::cbi;
use wire::uas::{CommandPipeIu, PipeUsage, SenseIu, StatusIu};
use wire::ufi;
use wire::usb::{ClassCode, Direction, EndpointAddress, TransferType};

/// Classes of interfaces that are kept of a device.
const CLASSES_MAX: usize = 16;

/// The role of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Role {
    /// Of no interface that is known.
    #[default]
    Unknown,
    /// Of a device that is not a drive.
    Other,
    /// BOT, to the device.
    BotOut,
    /// BOT, to the host.
    BotIn,
    /// UAS.
    Pipe(Pipe),
    /// CBI, either direction.
    CbiData,
    /// CBI: the interrupt endpoint.
    CbiStatus,
}

/// A pipe of UAS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pipe {
    Command,
    Status,
    DataIn,
    DataOut,
}

#[derive(Debug, Default)]
pub(crate) struct Roles {
    roles: [Role; EndpointAddress::COUNT],
    /// The interface that each role is of.
    interfaces: [Option<u8>; EndpointAddress::COUNT],
    configuration: Option<Configuration>,
    /// Whether the host was seen to choose.
    is_sure: bool,
    /// A command block of CBI was seen, and no descriptor.
    has_command_block: bool,
    classes: Vec<ClassCode>,
}

impl Roles {
    /// Takes the answer to GET_DESCRIPTOR(configuration); one that is cut is passed over.
    pub(crate) fn learn(&mut self, bytes: &[u8]) {
        let Ok(configuration) = Configuration::decode(bytes) else { return };
        self.learn_classes(&configuration);
        if bytes.len() < usize::from(configuration.head.total_len) {
            return;
        }
        let is_first = self.configuration.is_none();
        self.configuration = Some(configuration);
        if is_first && !self.is_sure {
            self.settle_all();
        }
    }

    /// Returns the classes of the interfaces, each once.
    pub(crate) fn classes(&self) -> &[ClassCode] {
        &self.classes
    }

    fn learn_classes(&mut self, configuration: &Configuration) {
        self.classes.clear();
        for class in configuration.settings.iter().map(|setting| setting.interface.class) {
            if self.classes.len() < CLASSES_MAX && !self.classes.contains(&class) {
                self.classes.push(class);
            }
        }
    }

    /// The host has chosen the configuration: setting 0 of each interface.
    pub(crate) fn configured(&mut self) {
        self.is_sure = self.configuration.is_some();
        self.settle_all();
    }

    /// The host has chosen a setting.
    pub(crate) fn chosen(&mut self, interface: u8, alternate: u8) {
        let Some(configuration) = self.configuration.take() else { return };
        let setting =
            configuration.settings_of(interface).find(|setting| setting.interface.alternate == alternate);
        if let Some(setting) = setting {
            self.is_sure = true;
            self.settle(setting);
        }
        self.configuration = Some(configuration);
    }

    /// Packets are missing here, in which the host may have chosen: what is known is a guess.
    pub(crate) fn miss(&mut self) {
        self.is_sure = false;
    }

    /// Returns the role of an endpoint; `is_idle` is whether a wrapper or a unit may begin here,
    /// `knows` whether a tag is in flight.
    pub(crate) fn of(&mut self, event: &Event<'_>, is_idle: bool, knows: impl Fn(u16) -> bool) -> Role {
        let index = event.endpoint.index();
        let role = self.roles[index];
        let is_interrupt = event.kind == TransferKind::Interrupt;
        if role == Role::Unknown && self.has_command_block {
            return if is_interrupt { Role::CbiStatus } else { Role::CbiData };
        }
        if is_interrupt && role != Role::CbiStatus {
            return Role::Other;
        }
        if self.is_sure || (role != Role::Unknown && !is_idle) {
            return role;
        }
        self.infer(event, knows);
        self.roles[index]
    }

    /// Returns the interface, if a class request with these bytes brings it a command block of CBI. Without a descriptor the bytes
    /// decide: other classes have a request of the same code.
    pub(crate) fn cbi(&mut self, interface: u8, bytes: &[u8]) -> Option<CbiInterface> {
        let Some(configuration) = &self.configuration else {
            let is_block = is_command_block(bytes);
            self.has_command_block |= is_block;
            return is_block.then_some(CbiInterface { is_ufi: true, has_interrupt: None });
        };
        let mut settings = configuration.settings_of(interface);
        settings.find_map(|setting| {
            let ClassCode { class, subclass, protocol } = setting.interface.class;
            let has_interrupt = match (class, protocol) {
                (MASS_STORAGE, CBI) => true,
                (MASS_STORAGE, CB) => false,
                _ => return None,
            };
            let is_ufi = subclass == ClassCode::CBI_UFI.subclass;
            Some(CbiInterface { is_ufi, has_interrupt: Some(has_interrupt) })
        })
    }

    fn settle_all(&mut self) {
        let Some(configuration) = self.configuration.take() else { return };
        self.roles = Default::default();
        for setting in configuration.settings.iter().filter(|setting| setting.interface.alternate == 0) {
            self.settle(setting);
        }
        self.configuration = Some(configuration);
    }

    /// The endpoints of an interface are those of this setting.
    fn settle(&mut self, setting: &Setting) {
        let interface = setting.interface.number;
        for index in 0..EndpointAddress::COUNT {
            if self.interfaces[index] == Some(interface) {
                (self.roles[index], self.interfaces[index]) = (Role::Unknown, None);
            }
        }
        for endpoint in &setting.endpoints {
            let address = endpoint.descriptor.address;
            let kind = endpoint.descriptor.attributes.transfer_type();
            let is_bulk = kind == TransferType::Bulk;
            let role = match (setting.interface.class, address.direction(), endpoint.usage) {
                (ClassCode { class: MASS_STORAGE, protocol: CBI | CB, .. }, direction, _) => {
                    cbi_role(kind, direction)
                }
                _ if !is_bulk => Role::Other,
                (ClassCode::BOT, Direction::Out, _) => Role::BotOut,
                (ClassCode::BOT, Direction::In, _) => Role::BotIn,
                (ClassCode::UAS, _, Some(usage)) => pipe(usage).map_or(Role::Other, Role::Pipe),
                _ => Role::Other,
            };
            self.roles[address.index()] = role;
            self.interfaces[address.index()] = Some(interface);
        }
    }

    /// Looks into a transfer for what its endpoint is.
    fn infer(&mut self, event: &Event<'_>, knows: impl Fn(u16) -> bool) {
        let index = event.endpoint.index();
        let role = self.roles[index];
        if role == Role::Other {
            return;
        }
        if !event.is_in() {
            if role != Role::BotOut && event.is_submitted() && Cbw::decode(event.bytes).is_ok() {
                self.adopt(event.endpoint, Role::BotOut);
            } else if role != Role::Pipe(Pipe::Command) && is_command(event) {
                self.adopt(event.endpoint, Role::Pipe(Pipe::Command));
            } else if role == Role::Unknown && self.has(Role::Pipe(Pipe::Command)) {
                self.roles[index] = Role::Pipe(Pipe::DataOut);
            }
            return;
        }
        if role != Role::Unknown {
            return;
        }
        if self.has(Role::BotOut) || Csw::decode(event.bytes).is_ok() {
            self.roles[index] = Role::BotIn;
        } else if self.has(Role::Pipe(Pipe::Command)) && event.ended().is_some() {
            let unit = StatusIu::decode(event.bytes)
                .map(|iu| iu.tag())
                .or_else(|error| SenseIu::decode_front(event.bytes).map(|iu| iu.tag).map_err(|_| error));
            let is_status = unit.is_ok_and(&knows);
            // What is no unit at all is data; a unit of another tag may be an answer to a command that was not captured.
            let is_data = unit.is_err() && !event.bytes.is_empty();
            let pipe = if is_status { Pipe::Status } else { Pipe::DataIn };
            if is_status || is_data || self.has(Role::Pipe(Pipe::Status)) {
                self.roles[index] = Role::Pipe(pipe);
            }
        }
    }

    /// An endpoint shows what it is: so are the others of its setting, if there are descriptors, or unknown.
    fn adopt(&mut self, endpoint: EndpointAddress, role: Role) {
        let class = if role == Role::BotOut { ClassCode::BOT } else { ClassCode::UAS };
        if let Some(configuration) = self.configuration.take() {
            let has_endpoint = |setting: &&Setting| {
                let mut addresses = setting.endpoints.iter().map(|one| one.descriptor.address);
                setting.interface.class == class && addresses.any(|address| address == endpoint)
            };
            if let Some(setting) = configuration.settings.iter().find(has_endpoint) {
                self.settle(setting);
            }
            self.configuration = Some(configuration);
        } else {
            self.roles = Default::default();
        }
        self.roles[endpoint.index()] = role;
    }

    fn has(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }
}

const MASS_STORAGE: u8 = ClassCode::CBI_UFI.class;
const CBI: u8 = ClassCode::CBI_UFI.protocol;
const CB: u8 = ClassCode::CB_UFI.protocol;

fn cbi_role(kind: TransferType, direction: Direction) -> Role {
    match (kind, direction) {
        (TransferType::Bulk, _) => Role::CbiData,
        (TransferType::Interrupt, Direction::In) => Role::CbiStatus,
        _ => Role::Other,
    }
}

/// Whether bytes are a command block of UFI and hardly anything else.
fn is_command_block(bytes: &[u8]) -> bool {
    let is_padded = bytes.get(10..).is_some_and(|rest| rest == [0, 0]) || cbi::is_reset(bytes);
    bytes.len() == ufi::BLOCK_LEN && is_padded && ufi::data_stage(bytes, 0).is_some()
}

fn pipe(usage: PipeUsage) -> Option<Pipe> {
    Some(match usage {
        PipeUsage::Command => Pipe::Command,
        PipeUsage::Status => Pipe::Status,
        PipeUsage::DataIn => Pipe::DataIn,
        PipeUsage::DataOut => Pipe::DataOut,
        PipeUsage::Unknown(_) => return None,
    })
}

/// Whether a transfer is a command information unit and hardly anything else.
fn is_command(event: &Event<'_>) -> bool {
    /// Without additional bytes of the command block.
    const COMMAND_IU_BYTES: usize = 32;
    let is_alone = event.is_submitted() && event.bytes.len() == COMMAND_IU_BYTES;
    let reserved = [1, 5, 7].iter().all(|&at| event.bytes.get(at) == Some(&0));
    let is_unit = |unit| matches!(unit, CommandPipeIu::Command(iu) if iu.tag != 0);
    is_alone && reserved && CommandPipeIu::decode(event.bytes).is_ok_and(is_unit)
}
