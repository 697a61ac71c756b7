//! Which devices the selectors of a class and of a request leave.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

use corten_api::resource::v1::DeviceSelector as Selector;
use corten_cel::{Device, DeviceSelector, Fuel, STORED_EXPRESSIONS};
use serde_json::json;

use crate::inventory::Offer;

/// The selectors that one pod is placed by. Each expression is compiled once, and all of them have one budget of work together,
/// for all requests, devices and nodes: whoever writes claims chooses how many there are.
pub struct Selectors {
    compiled: RefCell<BTreeMap<String, Result<Rc<DeviceSelector>, String>>>,
    fuel: Fuel,
}

impl Default for Selectors {
    fn default() -> Self {
        Self { compiled: RefCell::default(), fuel: Fuel::new(Fuel::OBJECT) }
    }
}

/// Why it is not known what the selectors leave.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unselected {
    /// An expression cannot be compiled or evaluated.
    Wrong(String),
    /// The budget is used up.
    TooMuchWork,
}

impl Unselected {
    pub(crate) fn words(self) -> String {
        match self {
            Self::Wrong(error) => error,
            Self::TooMuchWork => "the selectors take more work than those of one pod may".to_owned(),
        }
    }
}

impl Selectors {
    /// Do all of them select the device?
    pub(crate) fn select(&self, selectors: &[Selector], offer: Offer<'_>) -> Result<bool, Unselected> {
        let mut expressions = selectors.iter().filter_map(|it| it.cel.as_ref()).peekable();
        if expressions.peek().is_none() {
            return Ok(true);
        }
        self.within_budget(|| {
            let id = offer.id();
            let named = |error: String| {
                format!("CEL runtime error for device {}/{}/{}: {error}", id.driver, id.pool, id.device)
            };
            let of_slice = json!(offer.device);
            let device = Device::new(&offer.slice.driver, &of_slice).map_err(named)?;
            for selector in expressions {
                if !self.compiled(&selector.expression)?.matches(&device).map_err(named)? {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }

    /// Are they expressions at all?
    pub(crate) fn compile(&self, selectors: &[Selector]) -> Result<(), Unselected> {
        let mut expressions = selectors.iter().filter_map(|it| it.cel.as_ref());
        self.within_budget(|| expressions.try_for_each(|it| self.compiled(&it.expression).map(drop)))
    }

    fn within_budget<T>(&self, work: impl FnOnce() -> Result<T, String>) -> Result<T, Unselected> {
        let (found, was_enough) = self.fuel.lend(u64::MAX, work);
        // What was found with an empty tank is not right, be it an answer or an error.
        if was_enough { found.map_err(Unselected::Wrong) } else { Err(Unselected::TooMuchWork) }
    }

    fn compiled(&self, expression: &str) -> Result<Rc<DeviceSelector>, String> {
        let mut all = self.compiled.borrow_mut();
        if let Some(known) = all.get(expression) {
            return known.clone();
        }
        let made = DeviceSelector::compile(expression, STORED_EXPRESSIONS).map(Rc::new).map_err(|it| it.to_string());
        all.insert(expression.to_owned(), made.clone());
        made
    }
}
