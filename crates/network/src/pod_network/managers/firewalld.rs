//! firewalld has zones of interfaces: the Pods' bridge is put into the one that lets all through.
//!
//! A zone says what may come in by its interfaces, so that nothing from outside is let in to Pods. It is told twice, over
//! D-Bus: what runs, and what firewalld reads whenever it is loaded anew. A zone of Corten's own would only run after a
//! reload, which takes away what an administrator has set for the moment.

use std::fs;

use corten_machine::{Layout, MachineError, command};
use zbus::{Connection, OwnedObjectPath, fdo::DBusProxy, names::BusName};

use crate::pod_network::filters::Chain;

const ZONE: &str = "trusted";
const NAME: &str = "org.fedoraproject.FirewallD1";
/// What is set for good of that zone, as far as it differs from how firewalld comes.
const FILE: &str = "/etc/firewalld/zones/trusted.xml";

#[zbus::proxy(
    interface = "org.fedoraproject.FirewallD1.zone",
    default_service = "org.fedoraproject.FirewallD1",
    default_path = "/org/fedoraproject/FirewallD1"
)]
trait RuntimeZones {
    #[zbus(name = "getZoneOfInterface")]
    fn zone_of_interface(&self, interface: &str) -> zbus::Result<String>;
    #[zbus(name = "changeZoneOfInterface")]
    fn change_zone_of_interface(&self, zone: &str, interface: &str) -> zbus::Result<String>;
    #[zbus(name = "removeInterface")]
    fn remove_interface(&self, zone: &str, interface: &str) -> zbus::Result<String>;
}

#[zbus::proxy(
    interface = "org.fedoraproject.FirewallD1.config",
    default_service = "org.fedoraproject.FirewallD1",
    default_path = "/org/fedoraproject/FirewallD1/config"
)]
trait PermanentZones {
    #[zbus(name = "getZoneOfInterface")]
    fn zone_of_interface(&self, interface: &str) -> zbus::Result<String>;
    #[zbus(name = "getZoneByName")]
    fn zone_by_name(&self, zone: &str) -> zbus::Result<OwnedObjectPath>;
}

#[zbus::proxy(interface = "org.fedoraproject.FirewallD1.config.zone", default_service = "org.fedoraproject.FirewallD1")]
trait LastingZone {
    #[zbus(name = "addInterface")]
    fn add_interface(&self, interface: &str) -> zbus::Result<()>;
    #[zbus(name = "removeInterface")]
    fn remove_interface(&self, interface: &str) -> zbus::Result<()>;
}

pub(super) fn keeps(chain: &Chain) -> bool {
    chain.table() == "firewalld"
}

pub(super) fn command(bridge: &str) -> String {
    format!("firewall-cmd --zone={ZONE} --change-interface={bridge}")
}

/// True where the bridge was in another zone, or in none.
pub(super) async fn open(layout: &Layout) -> Result<bool, MachineError> {
    put(&layout.bridge).await.map_err(failed)
}

async fn put(bridge: &str) -> zbus::Result<bool> {
    let Some(bus) = connected().await else { return Ok(false) };
    let lasting = PermanentZonesProxy::new(&bus).await?;
    let chosen = lasting.zone_of_interface(bridge).await?;
    if !chosen.is_empty() && chosen != ZONE {
        // An administrator has put it there: it stays, and is told of.
        return Ok(false);
    }
    let running = RuntimeZonesProxy::new(&bus).await?;
    let is_new = running.zone_of_interface(bridge).await? != ZONE;
    if is_new {
        running.change_zone_of_interface(ZONE, bridge).await?;
        tracing::info!(bridge, zone = ZONE, "firewalld drops pods' traffic: their bridge is in a zone that does not");
    }
    if chosen.is_empty() {
        lasting_zone(&bus, &lasting).await?.add_interface(bridge).await?;
    }
    Ok(is_new)
}

async fn lasting_zone<'a>(
    bus: &'a Connection,
    lasting: &PermanentZonesProxy<'_>,
) -> zbus::Result<LastingZoneProxy<'a>> {
    LastingZoneProxy::builder(bus).path(lasting.zone_by_name(ZONE).await?).build().await
}

/// Nothing where no firewalld runs: asking it would start it.
async fn connected() -> Option<Connection> {
    let bus = Connection::system().await.ok()?;
    let name = BusName::try_from(NAME).expect("it is a name of a bus");
    let runs = DBusProxy::new(&bus).await.ok()?.name_has_owner(name).await.ok()?;
    runs.then_some(bus)
}

/// Takes the bridge out of the zone. Harmless where it is not in it.
pub(super) async fn withdraw(layout: &Layout) -> Result<(), MachineError> {
    let bridge = &layout.bridge;
    let Some(bus) = connected().await else {
        let interface = format!("name=\"{bridge}\"");
        if fs::read_to_string(FILE).is_ok_and(|it| it.contains(&interface)) {
            let zone = format!("--zone={ZONE}");
            command::run("firewall-offline-cmd", &[&zone, &format!("--remove-interface={bridge}")], "").await?;
        }
        return Ok(());
    };
    take_out(&bus, bridge).await.map_err(failed)
}

async fn take_out(bus: &Connection, bridge: &str) -> zbus::Result<()> {
    let lasting = PermanentZonesProxy::new(bus).await?;
    if lasting.zone_of_interface(bridge).await? == ZONE {
        lasting_zone(bus, &lasting).await?.remove_interface(bridge).await?;
    }
    let running = RuntimeZonesProxy::new(bus).await?;
    if running.zone_of_interface(bridge).await? == ZONE {
        running.remove_interface(ZONE, bridge).await?;
    }
    Ok(())
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err gives")]
fn failed(error: zbus::Error) -> MachineError {
    MachineError::Command { program: "firewalld, over D-Bus".to_owned(), message: error.to_string() }
}
