//! Which devices the selectors of a class and of a request leave.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

use corten_api::resource::v1::DeviceSelector as Selector;
use corten_cel::{Device, DeviceSelector, STORED_EXPRESSIONS};
use serde_json::json;

use crate::inventory::Offer;

/// Expressions that were compiled: whoever asks for several nodes compiles each once.
#[derive(Default)]
pub struct Selectors {
    compiled: RefCell<BTreeMap<String, Result<Rc<DeviceSelector>, String>>>,
}

impl Selectors {
    /// Do all of them select the device?
    ///
    /// # Errors
    /// An expression cannot be compiled or evaluated.
    pub(crate) fn select(&self, selectors: &[Selector], offer: Offer<'_>) -> Result<bool, String> {
        let mut expressions = selectors.iter().filter_map(|it| it.cel.as_ref()).peekable();
        if expressions.peek().is_none() {
            return Ok(true);
        }
        let id = offer.id();
        let named =
            |error: String| format!("CEL runtime error for device {}/{}/{}: {error}", id.driver, id.pool, id.device);
        let of_slice = json!(offer.device);
        let device = Device::new(&offer.slice.driver, &of_slice).map_err(named)?;
        for selector in expressions {
            if !self.compiled(&selector.expression)?.matches(&device).map_err(named)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn compiled(&self, expression: &str) -> Result<Rc<DeviceSelector>, String> {
        let mut all = self.compiled.borrow_mut();
        let made = all.entry(expression.to_owned()).or_insert_with(|| compile(expression).map(Rc::new));
        made.clone()
    }
}

/// Are they expressions at all?
///
/// # Errors
/// The compiler's words about the first that is none.
pub(crate) fn compiles(selectors: &[Selector]) -> Result<(), String> {
    selectors.iter().filter_map(|it| it.cel.as_ref()).try_for_each(|it| compile(&it.expression).map(drop))
}

fn compile(expression: &str) -> Result<DeviceSelector, String> {
    DeviceSelector::compile(expression, STORED_EXPRESSIONS).map_err(|it| it.to_string())
}
