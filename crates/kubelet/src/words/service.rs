//! What a container's environment says of a Service.

/// What a Service's variables are made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceLink {
    /// `spec.clusterIP`; empty or `None` where it has no address.
    pub ip: String,
    pub ports: Vec<ServicePort>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServicePort {
    pub name: String,
    pub protocol: String,
    pub port: i32,
}
