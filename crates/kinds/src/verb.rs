//! What may be done to the objects of a kind.

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    Create,
    Delete,
    DeleteCollection,
    Get,
    List,
    Patch,
    Update,
    Watch,
}

impl Verb {
    pub const ALL: &'static [Self] = &[
        Self::Create,
        Self::Delete,
        Self::DeleteCollection,
        Self::Get,
        Self::List,
        Self::Patch,
        Self::Update,
        Self::Watch,
    ];
    /// Namespaces are deleted one by one.
    pub const WITHOUT_COLLECTION: &'static [Self] =
        &[Self::Create, Self::Delete, Self::Get, Self::List, Self::Patch, Self::Update, Self::Watch];
    /// Of a definition that is being deleted.
    pub const WITHOUT_CREATE: &'static [Self] =
        &[Self::Delete, Self::DeleteCollection, Self::Get, Self::List, Self::Patch, Self::Update, Self::Watch];
    /// Of such a definition, as discovery tells it.
    pub const LEAVING: &'static [Self] = &[Self::Delete, Self::DeleteCollection, Self::Get, Self::List, Self::Watch];
    /// Reviews: answered, never stored.
    pub const CREATE_ONLY: &'static [Self] = &[Self::Create];
    /// Measured when somebody asks.
    pub const READ_ONLY: &'static [Self] = &[Self::Get, Self::List];

    /// As discovery and RBAC write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Get => "get",
            Self::List => "list",
            Self::Patch => "patch",
            Self::Update => "update",
            Self::Watch => "watch",
        }
    }
}
