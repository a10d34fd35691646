//! `diff -r`: walks two directories side by side in the order of their names.

use std::fs;
use std::io;

use hotstart_python::path::join;

use super::super::native;
use super::{Failure, Flags, compare_files};

/// A directory entry, with its own entries if it is a directory.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Node {
    name: String,
    children: Option<Vec<Node>>,
}

/// Compares two directories, and returns whether they are equal.
pub(super) fn compare(flags: &Flags, roots: [&str; 2], out: &mut Vec<u8>) -> Result<bool, Failure> {
    // lit's program dies of an exception if an operand is no directory.
    let tree = |root: &str| {
        read_tree(root)
            .map_err(|_| Failure::Python("TypeError: 'NoneType' object is not subscriptable".to_owned()))
    };
    let trees = [tree(roots[0])?, tree(roots[1])?];
    Walk { flags, out }.dirs([&trees[0], &trees[1]], roots)
}

/// Whether every file below a directory may be read by the runner. What is no directory is left to the comparison.
pub(super) fn has_plain_files(path: &str) -> bool {
    let Ok(entries) = fs::read_dir(path) else { return true };
    entries.flatten().all(|entry| {
        let inner = join(path, &entry.file_name().to_string_lossy());
        native::is_plain(&inner) && (!entry.path().is_dir() || has_plain_files(&inner))
    })
}

fn read_tree(path: &str) -> io::Result<Vec<Node>> {
    let mut nodes = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let children = if entry.path().is_dir() { Some(read_tree(&join(path, &name))?) } else { None };
        nodes.push(Node { name, children });
    }
    nodes.sort();
    Ok(nodes)
}

struct Walk<'a> {
    flags: &'a Flags,
    out: &'a mut Vec<u8>,
}

impl Walk<'_> {
    fn dirs(&mut self, nodes: [&[Node]; 2], paths: [&str; 2]) -> Result<bool, Failure> {
        let [mut left, mut right] = nodes;
        let mut same = true;
        while let ([l, left_rest @ ..], [r, right_rest @ ..]) = (left, right) {
            match l.name.cmp(&r.name) {
                std::cmp::Ordering::Equal => {
                    let inner = [join(paths[0], &l.name), join(paths[1], &r.name)];
                    same &= self.entries([l, r], [&inner[0], &inner[1]])?;
                    (left, right) = (left_rest, right_rest);
                    continue;
                }
                std::cmp::Ordering::Less => {
                    self.only_in(paths[0], l);
                    left = left_rest;
                }
                std::cmp::Ordering::Greater => {
                    self.only_in(paths[1], r);
                    right = right_rest;
                }
            }
            same = false;
        }
        left.iter().for_each(|node| self.only_in(paths[0], node));
        right.iter().for_each(|node| self.only_in(paths[1], node));
        Ok(same && left.is_empty() && right.is_empty())
    }

    fn entries(&mut self, nodes: [&Node; 2], paths: [&str; 2]) -> Result<bool, Failure> {
        let (left, right) = (nodes[0].children.as_deref(), nodes[1].children.as_deref());
        let size = |path: &str| match fs::metadata(path) {
            Ok(found) if found.len() > 0 => Ok("regular file"),
            Ok(_) => Ok("regular empty file"),
            Err(error) => Err(Failure::File(error, path.to_owned())),
        };
        let kinds = match (left, right) {
            (Some(left), Some(right)) => return self.dirs([left, right], paths),
            (None, None) => return compare_files(self.flags, paths, None, self.out),
            (Some(_), None) => ["directory", size(paths[1])?],
            (None, Some(_)) => [size(paths[0])?, "directory"],
        };
        let line = format!("File {} is a {} while file {} is a {}\n", paths[0], kinds[0], paths[1], kinds[1]);
        self.out.extend_from_slice(line.as_bytes());
        Ok(false)
    }

    fn only_in(&mut self, dir: &str, node: &Node) {
        self.out.extend_from_slice(format!("Only in {dir}: {}\n", node.name).as_bytes());
    }
}
