//! The grammar. Operators are read by climbing their precedence, so that nesting costs few frames of the stack; and what is not
//! on the way down is not inlined, so that these are small.

use std::sync::Arc;

use super::{
    DEPTH_MAX, NESTED_MAX, NODES_MAX, SOURCE_CHARS_MAX,
    ast::{Call, Entry, Expr, Fold, Id, Kind, List, Literal, Select, Struct, StructField},
    lexer::{Token, Word, words},
    literal, macros,
};
use crate::{
    error::{Issue, Issues},
    escape::is_reserved,
};

/// A tree and where its nodes stand.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) root: Expr,
    /// The byte of each node, by its number.
    pub(crate) places: Vec<u32>,
}

/// What may begin an operand, as cel-go's grammar lists it.
const OPERAND: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, \
                       IDENTIFIER}";

/// What may come first in a map.
const ENTRY: &str = "{'[', '{', '}', '(', '.', ',', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, \
                     STRING, BYTES, IDENTIFIER}";

/// Binary operators: sign, function, how strongly it binds.
const OPERATORS: [(&str, &str, u8); 14] = [
    ("||", "_||_", 1),
    ("&&", "_&&_", 2),
    ("<", "_<_", 3),
    ("<=", "_<=_", 3),
    (">", "_>_", 3),
    (">=", "_>=_", 3),
    ("==", "_==_", 3),
    ("!=", "_!=_", 3),
    ("in", "@in", 3),
    ("+", "_+_", 4),
    ("-", "_-_", 4),
    ("*", "_*_", 5),
    ("/", "_/_", 5),
    ("%", "_%_", 5),
];

/// Which macros there are beside the standard ones.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Macros {
    pub(crate) bind: bool,
    pub(crate) two_variables: bool,
    pub(crate) sort_by: bool,
}

/// # Errors
/// Everything that is wrong with the words, and the first thing that is wrong with the sentence.
pub(crate) fn parse(source: &str, macros: Macros) -> Result<Parsed, Issues> {
    let n_chars = source.chars().count();
    if n_chars > SOURCE_CHARS_MAX {
        let message = format!("expression code point size exceeds limit: size: {n_chars}, limit {SOURCE_CHARS_MAX}");
        return Err(Issues::new("", vec![Issue { at: None, message }]));
    }
    let (words, issues) = words(source);
    let mut parser = Parser { words, next: 0, nested: 0, places: vec![0], issues, macros };
    let root = parser.whole();
    match root {
        Ok(root) if parser.issues.is_empty() => Ok(Parsed { root, places: parser.places }),
        _ => Err(Issues::new(source, parser.issues)),
    }
}

/// A complaint was made that ends the reading.
pub(super) struct Halt;
pub(super) type Read<T = Expr> = Result<T, Halt>;

pub(super) struct Parser<'a> {
    words: Vec<Word<'a>>,
    next: usize,
    nested: u16,
    places: Vec<u32>,
    issues: Vec<Issue>,
    pub(super) macros: Macros,
}

impl<'a> Parser<'a> {
    fn whole(&mut self) -> Read {
        let root = self.expr()?;
        if self.peek().token != Token::End {
            self.unexpected("<EOF>", Token::End);
        }
        Ok(root)
    }

    fn peek(&self) -> Word<'a> {
        self.words[self.next.min(self.words.len() - 1)]
    }

    fn advance(&mut self) -> Word<'a> {
        let word = self.peek();
        self.next += 1;
        word
    }

    fn is(&self, sign: &'static str) -> bool {
        self.peek().token == Token::Sign(sign)
    }

    fn take(&mut self, sign: &'static str) -> Option<Word<'a>> {
        self.is(sign).then(|| self.advance())
    }

    fn expect(&mut self, sign: &'static str) -> Read<()> {
        if self.take(sign).is_some() {
            return Ok(());
        }
        if self.unexpected(&format!("'{sign}'"), Token::Sign(sign)) {
            self.next += 2;
            return Ok(());
        }
        Err(Halt)
    }

    /// Complains of the next word; is the one after it what was expected?
    #[inline(never)]
    fn unexpected(&mut self, expected: &str, token: Token) -> bool {
        let word = self.peek();
        let is_extra = word.token != Token::End && self.words.get(self.next + 1).is_some_and(|it| it.token == token);
        let kind = if is_extra { "extraneous" } else { "mismatched" };
        self.complain(word.at, format!("Syntax error: {kind} input '{}' expecting {expected}", word.text));
        is_extra
    }

    #[inline(never)]
    fn complain(&mut self, at: usize, message: impl Into<String>) {
        self.issues.push(Issue { at: Some(at), message: message.into() });
    }

    pub(super) fn complain_of(&mut self, id: Id, message: &str) -> Halt {
        let at = self.places[id as usize] as usize;
        self.complain(at, message);
        Halt
    }

    /// A new node, at a byte of the source.
    #[inline(never)]
    fn node(&mut self, at: usize, kind: Kind) -> Read {
        let id = Id::try_from(self.places.len()).unwrap_or(NODES_MAX);
        if id >= NODES_MAX {
            self.issues.push(Issue { at: None, message: format!("expression has more than {NODES_MAX} nodes") });
            return Err(Halt);
        }
        self.places.push(u32::try_from(at).unwrap_or(u32::MAX));
        let depth = 1 + below(&kind);
        if depth > DEPTH_MAX {
            return Err(self.too_deep(DEPTH_MAX));
        }
        Ok(Expr { id, depth, kind })
    }

    #[inline(never)]
    fn too_deep(&mut self, most: u16) -> Halt {
        self.issues.push(Issue { at: None, message: format!("expression recursion limit exceeded: {most}") });
        Halt
    }

    /// A new node, where another one stands.
    pub(super) fn node_at(&mut self, id: Id, kind: Kind) -> Read {
        self.node(self.places[id as usize] as usize, kind)
    }

    pub(super) fn literal(&mut self, at: Id, literal: Literal) -> Read {
        self.node_at(at, Kind::Literal(literal))
    }

    pub(super) fn ident(&mut self, at: Id, name: &str) -> Read {
        self.node_at(at, Kind::Ident(name.into()))
    }

    pub(super) fn call(&mut self, at: Id, function: &str, args: Vec<Expr>) -> Read {
        self.node_at(at, Kind::Call(Box::new(Call { function: function.into(), target: None, args })))
    }

    pub(super) fn list(&mut self, at: Id, elements: Vec<Expr>) -> Read {
        self.node_at(at, Kind::List(List { elements, optional: Vec::new() }))
    }

    pub(super) fn fold(&mut self, at: Id, fold: Fold) -> Read {
        self.node_at(at, Kind::Fold(Box::new(fold)))
    }

    /// The same tree once more, with numbers of its own.
    pub(super) fn copy(&mut self, expr: &Expr) -> Read {
        let kind = match &expr.kind {
            kind @ (Kind::Literal(_) | Kind::Ident(_)) => kind.clone(),
            Kind::Select(it) => {
                let operand = self.copy(&it.operand)?;
                Kind::Select(Box::new(Select { operand, field: it.field.clone(), is_test: it.is_test }))
            }
            Kind::Call(it) => {
                let target = it.target.as_ref().map(|it| self.copy(it)).transpose()?;
                let args = self.copies(&it.args)?;
                Kind::Call(Box::new(Call { function: it.function.clone(), target, args }))
            }
            Kind::List(it) => Kind::List(List { elements: self.copies(&it.elements)?, optional: it.optional.clone() }),
            Kind::Map(entries) => {
                let mut copies = Vec::with_capacity(entries.len());
                for it in entries {
                    let (key, value) = (self.copy(&it.key)?, self.copy(&it.value)?);
                    copies.push(Entry { key, value, is_optional: it.is_optional });
                }
                Kind::Map(copies)
            }
            Kind::Struct(it) => {
                let mut fields = Vec::with_capacity(it.fields.len());
                for field in &it.fields {
                    fields.push(StructField { value: self.copy(&field.value)?, ..field.clone() });
                }
                Kind::Struct(Box::new(Struct { name: it.name.clone(), fields }))
            }
            Kind::Fold(it) => Kind::Fold(Box::new(Fold {
                range: self.copy(&it.range)?,
                init: self.copy(&it.init)?,
                condition: self.copy(&it.condition)?,
                step: self.copy(&it.step)?,
                result: self.copy(&it.result)?,
                variable: it.variable.clone(),
                variable2: it.variable2.clone(),
                accumulator: it.accumulator.clone(),
            })),
        };
        self.node_at(expr.id, kind)
    }

    fn copies(&mut self, exprs: &[Expr]) -> Read<Vec<Expr>> {
        exprs.iter().map(|it| self.copy(it)).collect()
    }

    fn expr(&mut self) -> Read {
        self.nested += 1;
        if self.nested > NESTED_MAX {
            return Err(self.too_deep(NESTED_MAX));
        }
        let condition = self.operators(1)?;
        let expr = if self.is("?") { self.conditional(condition)? } else { condition };
        self.nested -= 1;
        Ok(expr)
    }

    #[inline(never)]
    fn conditional(&mut self, condition: Expr) -> Read {
        let sign = self.advance();
        let yes = self.operators(1)?;
        self.expect(":")?;
        let no = self.expr()?;
        let call = Call { function: "_?_:_".into(), target: None, args: vec![condition, yes, no] };
        self.node(sign.at, Kind::Call(Box::new(call)))
    }

    /// Operands and the operators between them that bind at least so strongly: the strongest first, each level in a loop, so
    /// that a level at which nothing stands costs no frame.
    fn operators(&mut self, least: u8) -> Read {
        let mut left = self.unary()?;
        for level in (least..=5).rev() {
            while let Some((function, at)) = self.operator(level) {
                if level <= 2 {
                    left = self.balanced(left, function, at, level)?;
                } else {
                    let right = self.operators(level + 1)?;
                    left = self.binary(function, at, left, right)?;
                }
            }
        }
        Ok(left)
    }

    /// The function of the next operator, if it is one of this level.
    fn operator(&mut self, level: u8) -> Option<(&'static str, usize)> {
        let Token::Sign(sign) = self.peek().token else { return None };
        let (_, function, _) = OPERATORS.iter().find(|it| it.0 == sign && it.2 == level)?;
        Some((function, self.advance().at))
    }

    #[inline(never)]
    fn binary(&mut self, function: &'static str, at: usize, left: Expr, right: Expr) -> Read {
        let call = Call { function: function.into(), target: None, args: vec![left, right] };
        self.node(at, Kind::Call(Box::new(call)))
    }

    /// A chain of `&&` or `||` becomes a balanced tree: it is as shallow as can be.
    #[inline(never)]
    fn balanced(&mut self, first: Expr, function: &'static str, at: usize, level: u8) -> Read {
        let (mut terms, mut places) = (vec![first, self.operators(level + 1)?], vec![at]);
        while let Some((_, at)) = self.operator(level) {
            places.push(at);
            terms.push(self.operators(level + 1)?);
        }
        let mut terms: Vec<Option<Expr>> = terms.into_iter().map(Some).collect();
        self.balance(function, &mut terms, &places)
    }

    fn balance(&mut self, function: &'static str, terms: &mut [Option<Expr>], places: &[usize]) -> Read {
        let middle = places.len() / 2;
        let (left_terms, right_terms) = terms.split_at_mut(middle + 1);
        let side = |this: &mut Self, terms: &mut [Option<Expr>], places: &[usize]| match terms {
            [one] => one.take().ok_or(Halt),
            _ => this.balance(function, terms, places),
        };
        let left = side(self, left_terms, &places[..middle])?;
        let right = side(self, right_terms, &places[middle + 1..])?;
        self.binary(function, places[middle], left, right)
    }

    fn unary(&mut self) -> Read {
        let first = self.peek();
        let (sign, function) = match first.token {
            Token::Sign("!") => ("!", "!_"),
            Token::Sign("-") => ("-", "-_"),
            _ => return self.member(),
        };
        let mut n_signs = 0;
        while self.is(sign) && !self.is_negative_number() {
            self.next += 1;
            n_signs += 1;
        }
        let operand = self.member()?;
        if n_signs % 2 == 0 {
            return Ok(operand);
        }
        let call = Call { function: function.into(), target: None, args: vec![operand] };
        self.node(first.at, Kind::Call(Box::new(call)))
    }

    fn is_negative_number(&self) -> bool {
        let next = self.words.get(self.next + 1).map(|it| it.token);
        self.is("-") && matches!(next, Some(Token::Int | Token::Float))
    }

    fn member(&mut self) -> Read {
        let mut expr = self.primary()?;
        loop {
            if let Some(dot) = self.take(".") {
                expr = self.selected(expr, dot.at)?;
            } else if self.is("[") {
                expr = self.indexed(expr)?;
            } else if self.is("{") && expr.qualified().is_some() {
                expr = self.structure(&expr)?;
            } else {
                return Ok(expr);
            }
        }
    }

    #[inline(never)]
    fn indexed(&mut self, operand: Expr) -> Read {
        let bracket = self.advance();
        let function = if self.take("?").is_some() { "_[?_]" } else { "_[_]" };
        let index = self.expr()?;
        self.expect("]")?;
        self.binary(function, bracket.at, operand, index)
    }

    #[inline(never)]
    fn selected(&mut self, operand: Expr, at: usize) -> Read {
        let is_optional = self.take("?").is_some();
        let name = self.advance();
        if name.token != Token::Ident {
            self.next -= 1;
            self.unexpected("IDENTIFIER", Token::Ident);
            return Err(Halt);
        }
        if is_optional {
            let field = self.node(name.at, Kind::Literal(Literal::String(name.text.into())))?;
            return self.binary("_?._", at, operand, field);
        }
        let Some(open) = self.take("(") else {
            let select = Select { operand, field: name.text.into(), is_test: false };
            return self.node(at, Kind::Select(Box::new(select)));
        };
        let args = self.arguments()?;
        self.called(open.at, name.text, Some(operand), args)
    }

    #[inline(never)]
    fn arguments(&mut self) -> Read<Vec<Expr>> {
        let mut args = Vec::new();
        if self.take(")").is_some() {
            return Ok(args);
        }
        loop {
            args.push(self.expr()?);
            if self.take(",").is_none() {
                self.expect(")")?;
                return Ok(args);
            }
        }
    }

    #[inline(never)]
    fn called(&mut self, at: usize, function: &str, target: Option<Expr>, args: Vec<Expr>) -> Read {
        let function: Arc<str> = function.into();
        let call = Call { function, target, args };
        // The call keeps its number, so that what a macro makes of it stands where it stood.
        let id = Id::try_from(self.places.len()).unwrap_or(NODES_MAX);
        let node = self.node(at, Kind::Call(Box::new(call)))?;
        let Kind::Call(call) = node.kind else { return Err(Halt) };
        match macros::expanded(self, id, *call)? {
            macros::Expanded::Macro(expr) => Ok(expr),
            macros::Expanded::Call(call) => Ok(Expr { id, depth: node.depth, kind: Kind::Call(Box::new(call)) }),
        }
    }

    fn primary(&mut self) -> Read {
        if self.take("(").is_some() {
            let expr = self.expr()?;
            self.expect(")")?;
            return Ok(expr);
        }
        self.operand()
    }

    #[inline(never)]
    fn operand(&mut self) -> Read {
        let word = self.advance();
        match word.token {
            Token::Sign("[") => self.list_literal(word.at),
            Token::Sign("{") => self.map_literal(word.at),
            Token::Sign(".") if self.peek().token == Token::Ident => {
                let name = self.advance();
                self.named(word.at, &format!(".{}", name.text), name)
            }
            Token::Sign("-") if matches!(self.peek().token, Token::Int | Token::Float) => {
                let number = self.advance();
                let text = format!("-{}", number.text);
                self.number(word.at, number.token, &text)
            }
            Token::Sign(it @ ("true" | "false")) => self.node(word.at, Kind::Literal(Literal::Bool(it == "true"))),
            Token::Sign("null") => self.node(word.at, Kind::Literal(Literal::Null)),
            Token::Ident => self.named(word.at, word.text, word),
            Token::Int | Token::Uint | Token::Float => self.number(word.at, word.token, word.text),
            Token::Text => self.quoted(word.at, literal::string(word.text)),
            Token::Bytes => self.quoted(word.at, literal::bytes(word.text)),
            Token::Sign(_) | Token::Escaped | Token::End => {
                self.next -= 1;
                Err(self.no_operand(OPERAND))
            }
        }
    }

    /// Says that no operand begins here; one that is in the way, if one begins after it.
    #[inline(never)]
    fn no_operand(&mut self, expected: &str) -> Halt {
        let word = self.peek();
        let is_extra = word.token != Token::End && self.words.get(self.next + 1).is_some_and(begins_operand);
        let kind = if is_extra { "extraneous" } else { "mismatched" };
        self.complain(word.at, format!("Syntax error: {kind} input '{}' expecting {expected}", word.text));
        Halt
    }

    #[inline(never)]
    fn named(&mut self, at: usize, name: &str, word: Word<'a>) -> Read {
        if let Some(open) = self.take("(") {
            let args = self.arguments()?;
            return self.called(open.at, name, None, args);
        }
        if is_reserved(word.text) {
            self.complain(word.at, format!("reserved identifier: {}", word.text));
        }
        self.node(at, Kind::Ident(name.into()))
    }

    #[inline(never)]
    fn number(&mut self, at: usize, token: Token, text: &str) -> Read {
        let literal = match token {
            Token::Int => literal::int(text),
            Token::Uint => literal::uint(text),
            _ => literal::double(text),
        };
        self.quoted(at, literal.map_err(str::to_owned))
    }

    #[inline(never)]
    fn quoted(&mut self, at: usize, literal: Result<Literal, String>) -> Read {
        match literal {
            Ok(literal) => self.node(at, Kind::Literal(literal)),
            Err(message) => {
                self.complain(at, message);
                self.node(at, Kind::Literal(Literal::Null))
            }
        }
    }

    #[inline(never)]
    fn list_literal(&mut self, at: usize) -> Read {
        let mut list = List { elements: Vec::new(), optional: Vec::new() };
        while !self.is("]") {
            if self.take("?").is_some() {
                list.optional.push(list.elements.len());
            }
            list.elements.push(self.expr()?);
            if self.take(",").is_none() {
                break;
            }
        }
        self.expect("]")?;
        self.node(at, Kind::List(list))
    }

    #[inline(never)]
    fn map_literal(&mut self, at: usize) -> Read {
        let mut entries = Vec::new();
        if !self.is("}") && !self.is("?") && !begins_operand(&self.peek()) {
            return Err(self.no_operand(ENTRY));
        }
        while !self.is("}") {
            let is_optional = self.take("?").is_some();
            let key = self.expr()?;
            self.expect(":")?;
            let value = self.expr()?;
            entries.push(Entry { key, value, is_optional });
            if self.take(",").is_none() {
                break;
            }
        }
        self.expect("}")?;
        self.node(at, Kind::Map(entries))
    }

    #[inline(never)]
    fn structure(&mut self, name: &Expr) -> Read {
        let open = self.advance();
        let mut fields = Vec::new();
        while !self.is("}") {
            let is_optional = self.take("?").is_some();
            let field = self.advance();
            if field.token != Token::Ident {
                self.next -= 1;
                let names = "{IDENTIFIER, ESC_IDENTIFIER}";
                let expected = if is_optional { names } else { "{'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}" };
                self.unexpected(expected, Token::Ident);
                return Err(Halt);
            }
            let colon = self.peek().at;
            self.expect(":")?;
            let value = self.expr()?;
            // A number of its own, so that complaints of the field have a place.
            let id = self.node(colon, Kind::Literal(Literal::Null))?.id;
            fields.push(StructField { id, name: field.text.into(), value, is_optional });
            if self.take(",").is_none() {
                break;
            }
        }
        self.expect("}")?;
        let name = name.qualified().unwrap_or_default().into();
        self.node(open.at, Kind::Struct(Box::new(Struct { name, fields })))
    }
}

fn begins_operand(word: &Word<'_>) -> bool {
    match word.token {
        Token::Sign(sign) => matches!(sign, "[" | "{" | "(" | "." | "-" | "!" | "true" | "false" | "null"),
        Token::Ident | Token::Int | Token::Uint | Token::Float | Token::Text | Token::Bytes => true,
        Token::Escaped | Token::End => false,
    }
}

/// How deep what is below a node is.
fn below(kind: &Kind) -> u16 {
    let deepest = |exprs: &[Expr]| exprs.iter().map(|it| it.depth).max().unwrap_or(0);
    match kind {
        Kind::Literal(_) | Kind::Ident(_) => 0,
        Kind::Select(it) => it.operand.depth,
        Kind::Call(it) => deepest(&it.args).max(it.target.as_ref().map_or(0, |it| it.depth)),
        Kind::List(it) => deepest(&it.elements),
        Kind::Map(entries) => entries.iter().map(|it| it.key.depth.max(it.value.depth)).max().unwrap_or(0),
        Kind::Struct(it) => it.fields.iter().map(|it| it.value.depth).max().unwrap_or(0),
        Kind::Fold(it) => {
            [&it.range, &it.init, &it.condition, &it.step, &it.result].iter().map(|it| it.depth).max().unwrap_or(0)
        }
    }
}
