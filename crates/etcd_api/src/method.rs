//! The paths of methods.

pub const RANGE: &str = "/etcdserverpb.KV/Range";
pub const PUT: &str = "/etcdserverpb.KV/Put";
pub const DELETE_RANGE: &str = "/etcdserverpb.KV/DeleteRange";
pub const TXN: &str = "/etcdserverpb.KV/Txn";
pub const COMPACT: &str = "/etcdserverpb.KV/Compact";
pub const WATCH: &str = "/etcdserverpb.Watch/Watch";
pub const LEASE_GRANT: &str = "/etcdserverpb.Lease/LeaseGrant";
pub const LEASE_REVOKE: &str = "/etcdserverpb.Lease/LeaseRevoke";
pub const LEASE_KEEP_ALIVE: &str = "/etcdserverpb.Lease/LeaseKeepAlive";
pub const LEASE_TIME_TO_LIVE: &str = "/etcdserverpb.Lease/LeaseTimeToLive";
pub const LEASE_LEASES: &str = "/etcdserverpb.Lease/LeaseLeases";
pub const STATUS: &str = "/etcdserverpb.Maintenance/Status";
pub const ALARM: &str = "/etcdserverpb.Maintenance/Alarm";
pub const DEFRAGMENT: &str = "/etcdserverpb.Maintenance/Defragment";
pub const HASH: &str = "/etcdserverpb.Maintenance/Hash";
pub const HASH_KV: &str = "/etcdserverpb.Maintenance/HashKV";
pub const SNAPSHOT: &str = "/etcdserverpb.Maintenance/Snapshot";
pub const MEMBER_LIST: &str = "/etcdserverpb.Cluster/MemberList";
pub const MEMBER_ADD: &str = "/etcdserverpb.Cluster/MemberAdd";
pub const MEMBER_REMOVE: &str = "/etcdserverpb.Cluster/MemberRemove";
pub const MEMBER_UPDATE: &str = "/etcdserverpb.Cluster/MemberUpdate";
pub const MEMBER_PROMOTE: &str = "/etcdserverpb.Cluster/MemberPromote";
pub const AUTH_STATUS: &str = "/etcdserverpb.Auth/AuthStatus";
