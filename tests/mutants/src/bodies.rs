//! Finds the bodies of functions in a source.

use std::ops::Range;

use anyhow::Result;
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Block, ReturnType, Signature, Type, TypeParamBound};

/// The body of a function that is not inside another function.
pub struct Body {
    pub range: Range<usize>,
    pub kind: Kind,
}

/// How a body can be one of several at run time.
#[derive(PartialEq, Eq)]
pub enum Kind {
    Plain,
    /// An iterator of unnamed type: its forms are of different types.
    Iterator,
    /// It cannot be chosen at run time.
    Fixed,
}

/// The bodies of a file, in order.
pub fn bodies(text: &str) -> Result<Vec<Body>> {
    let mut found = Bodies(Vec::new());
    found.visit_file(&syn::parse_file(text)?);
    Ok(found.0)
}

struct Bodies(Vec<Body>);

impl Bodies {
    fn add(&mut self, signature: &Signature, block: &Block) {
        let mut unnamed = Unnamed(false);
        unnamed.visit_return_type(&signature.output);
        let kind = if signature.constness.is_some() {
            Kind::Fixed
        } else if is_iterator(&signature.output) {
            Kind::Iterator
        } else if unnamed.0 {
            Kind::Fixed
        } else {
            Kind::Plain
        };
        let range = block.span().byte_range();
        self.0.push(Body { range, kind });
    }
}

/// Whether it returns an `impl Iterator` that promises no other trait than `Clone`.
fn is_iterator(output: &ReturnType) -> bool {
    let ReturnType::Type(_, returned) = output else {
        return false;
    };
    let Type::ImplTrait(unnamed) = &**returned else {
        return false;
    };
    let names = unnamed.bounds.iter().map(|bound| match bound {
        TypeParamBound::Trait(bound) => bound.path.segments.last(),
        _ => None,
    });
    let mut names = names.map(|last| last.map(|last| last.ident.to_string()));
    names
        .next()
        .flatten()
        .is_some_and(|first| first == "Iterator")
        && names.all(|other| other.is_some_and(|other| other == "Clone"))
}

/// Whether a type contains `impl`.
struct Unnamed(bool);

impl<'ast> Visit<'ast> for Unnamed {
    fn visit_type_impl_trait(&mut self, _: &'ast syn::TypeImplTrait) {
        self.0 = true;
    }
}

impl<'ast> Visit<'ast> for Bodies {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.add(&item.sig, &item.block);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add(&item.sig, &item.block);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.add(&item.sig, block);
        }
    }
}
