//! What a kind does to its objects on their way into the store. Every function is pure and sees the whole object as a DOM.

use corten_meta::Violation;
use serde_json::Value;

use crate::Subresource;

/// The server calls, for a create: `default`, `prepare_create`, (admission), `validate_new`; for an update or patch: `default`,
/// `prepare_update`, (admission), then `validate` and `validate_update` in the order of `update_rules`. Where admission changed the
/// object, `default` and `prepare_…` are called once more after it: they must be idempotent. What holds for every kind (names, labels,
/// finalizers, owner references, uid, timestamps, generation) the server does itself; a policy holds what is particular to its kind.
pub trait Policy: Send + Sync {
    /// Fills in what the author left out. Must be idempotent.
    fn default(&self, _object: &mut Value) {}

    /// As [`Policy::default`], of a kind whose defaults others write.
    ///
    /// # Errors
    /// The defaults make the object too large.
    fn try_default(&self, object: &mut Value) -> Result<(), Violation> {
        self.default(object);
        Ok(())
    }

    /// Do the defaults fill in the status, too? Then what is required of it may be what they fill in.
    fn defaults_status(&self) -> bool {
        false
    }

    /// Drops what a creator may not set. By default: `status`.
    fn prepare_create(&self, object: &mut Value) {
        if let Some(object) = object.as_object_mut() {
            object.shift_remove("status");
        }
    }

    /// Puts back what an update of the main resource may not change. By default: `status`.
    fn prepare_update(&self, new: &mut Value, old: &Value) {
        keep(new, old, "status");
    }

    /// Puts back what of `status` an update of it may not change. All but `status` and metadata the server puts back for all
    /// kinds, of metadata what [`Policy::status_keeps`]. Seldom overridden.
    fn prepare_status_update(&self, _new: &mut Value, _old: &Value) {}

    /// Which fields of metadata an update of `status` leaves as they are (`PrepareForUpdate` of the kind's status strategy). It
    /// may change all others that any update may.
    fn status_keeps(&self) -> &'static [&'static str] {
        &[]
    }

    /// Which grammar names follow.
    fn name_violations(&self, name: &str) -> Vec<String> {
        corten_meta::field::dns1123_subdomain(name)
    }

    fn validate(&self, _object: &Value) -> Vec<Violation> {
        Vec::new()
    }

    /// Checks what only a new object must keep: what is stored already may have been right once.
    fn validate_new(&self, _object: &Value) -> Vec<Violation> {
        Vec::new()
    }

    /// Checks a change that `validate` cannot see: immutable fields.
    fn validate_update(&self, _new: &Value, _old: &Value) -> Vec<Violation> {
        Vec::new()
    }

    /// Checks a change of `status`.
    fn validate_status_update(&self, _new: &Value, _old: &Value) -> Vec<Violation> {
        Vec::new()
    }

    /// Checks a change of `approval`: of what a CertificateSigningRequest's conditions say of it.
    fn validate_approval(&self, _new: &Value, _old: &Value) -> Vec<Violation> {
        Vec::new()
    }

    /// What an update of a subresource that is particular to the kind (a Pod's `ephemeralcontainers` and `resize`) makes of
    /// the stored object: everything but that part of what was asked for stays as it is.
    fn take_part(&self, _subresource: Subresource, _asked: &Value, old: &Value) -> Value {
        old.clone()
    }

    /// Checks such an update.
    fn validate_part(&self, _subresource: Subresource, _new: &Value, _old: &Value) -> Vec<Violation> {
        Vec::new()
    }

    /// Where the value of a selectable field stands in the stored form: where its name says, unless the kind's own
    /// `ToSelectableFields` says otherwise.
    fn selectable_path<'a>(&self, field: &'a str) -> SelectablePath<'a> {
        SelectablePath { path: field, instead: None }
    }

    /// What the author of an accepted object should know, sent as `Warning` headers.
    fn warnings(&self, _new: &Value, _old: Option<&Value>) -> Vec<String> {
        Vec::new()
    }

    /// May finalizers be without a domain? Kinds that Kubernetes' core validates have only those that it knows.
    fn takes_short_finalizers(&self) -> bool {
        false
    }

    /// What a deletion waits for beside the finalizers that the object has.
    fn finalizer_of_deletion(&self) -> Option<&'static str> {
        None
    }

    /// The grace period, in seconds, of a delete that asks for `asked` (rest.RESTGracefulDeleteStrategy). 0: the object goes
    /// at once.
    fn grace_seconds(&self, _object: &Value, _asked: Option<i64>) -> i64 {
        0
    }

    /// Does `metadata.generation` count this kind's spec changes?
    fn has_generation(&self) -> bool {
        true
    }

    /// Does `metadata.generation` count on, or stay what it began with?
    fn counts_changes(&self) -> bool {
        self.has_generation()
    }

    /// Does `metadata.generation` count changes of `status`, which has no subresource of its own?
    fn counts_status(&self) -> bool {
        false
    }

    /// What of an update is validated, and in which order it is told.
    fn update_rules(&self) -> UpdateRules {
        UpdateRules::WholeThenChange
    }

    /// Fields of metadata whose changes `metadata.generation` counts, too.
    fn counted_metadata(&self) -> &'static [&'static str] {
        &[]
    }

    /// May a PUT leave out `metadata.resourceVersion`, so that it replaces whatever stands there? The field's name for it is
    /// `AllowUnconditionalUpdate` (rest.RESTUpdateStrategy).
    fn allows_unconditional_update(&self) -> bool {
        true
    }

    /// How the kind's own validation of an update checks the metadata that rest.BeforeUpdate has checked already. Whoever
    /// breaks a rule of metadata is told of it each time.
    fn metadata_checks(&self) -> MetadataChecks {
        MetadataChecks::WholeAndChange
    }
}

/// Of kinds whose status brings nothing of metadata along (`ResetObjectMetaForStatus`).
pub(crate) const RESET_METADATA: &[&str] =
    &["annotations", "deletionTimestamp", "finalizers", "labels", "ownerReferences"];

/// Where the value of a selectable field is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelectablePath<'a> {
    pub path: &'a str,
    /// Where it is read from if `path` is empty.
    pub instead: Option<&'static str>,
}

/// What of an update is validated: the object as if it were new, and what has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateRules {
    WholeThenChange,
    ChangeThenWhole,
    /// What may not change makes up for the rest.
    Change,
}

/// What the validation of an update checks once more of metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataChecks {
    /// Nothing.
    None,
    /// What a change may do (ValidateObjectMetaUpdate).
    Change,
    /// That, and what metadata must be (ValidateObjectMeta).
    WholeAndChange,
}

/// Makes `field` of `new` what it is in `old`.
pub fn keep(new: &mut Value, old: &Value, field: &str) {
    let Some(new) = new.as_object_mut() else { return };
    match old.get(field) {
        Some(value) => {
            new.insert(field.to_owned(), value.clone());
        }
        None => {
            new.shift_remove(field);
        }
    }
}
