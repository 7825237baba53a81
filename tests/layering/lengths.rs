//! No file is long, and no function of `src`.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::read_all;

const MAX_FILE: usize = 400;
const MAX_FUNCTION: usize = 70;

pub fn check(file: &str, source: &str) -> Vec<String> {
    struct Functions(Vec<(String, usize)>);
    impl Functions {
        fn add(&mut self, signature: &syn::Signature, body: &syn::Block) {
            let span = body.brace_token.span;
            let lines = span.close().end().line - signature.span().start().line + 1;
            self.0.push((signature.ident.to_string(), lines));
        }
    }
    impl<'a> Visit<'a> for Functions {
        fn visit_item_fn(&mut self, f: &'a syn::ItemFn) {
            self.add(&f.sig, &f.block);
            visit::visit_item_fn(self, f);
        }
        fn visit_impl_item_fn(&mut self, f: &'a syn::ImplItemFn) {
            self.add(&f.sig, &f.block);
            visit::visit_impl_item_fn(self, f);
        }
        fn visit_trait_item_fn(&mut self, f: &'a syn::TraitItemFn) {
            if let Some(body) = &f.default {
                self.add(&f.sig, body);
            }
            visit::visit_trait_item_fn(self, f);
        }
    }
    let mut functions = Functions(Vec::new());
    functions.visit_file(&syn::parse_file(source).expect("the file is Rust"));
    let long = functions
        .0
        .into_iter()
        .filter(|(_, lines)| *lines > MAX_FUNCTION);
    let mut broken: Vec<String> = long
        .map(|(name, lines)| format!("{file}: fn {name} has {lines} lines"))
        .collect();
    broken.extend(check_file(file, source));
    broken
}

fn check_file(file: &str, source: &str) -> Option<String> {
    let lines = source.lines().count();
    (lines > MAX_FILE).then(|| format!("{file}: {lines} lines"))
}

#[test]
fn no_other_file_is_long() {
    let folders = ["tests", "benches", "examples", "fuzz/fuzz_targets"];
    let all = folders.iter().flat_map(|folder| read_all(folder));
    let broken: Vec<_> = all
        .filter_map(|(file, source)| check_file(&file, &source))
        .collect();
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}
