//! A tree of input files, as the service wants it: a message for each directory, which names its entries by digest.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use prost::Message;

use crate::api;
use crate::digest::Digest;

/// Where the bytes of a blob are.
#[derive(Clone, Debug)]
pub enum Content {
    /// In memory.
    Bytes(Arc<[u8]>),
    /// In a file, which must not change until it is uploaded.
    File(PathBuf),
}

/// Contents by name.
pub type Blobs = HashMap<Digest, Content>;

/// Files below an input root.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    entries: BTreeMap<String, Node>,
    blobs: Blobs,
}

#[derive(Clone, Debug)]
enum Node {
    File(Digest, bool),
    Directory(BTreeMap<String, Node>),
}

impl Tree {
    /// Adds a file at this relative path. Returns whether the path was free or held a file, and no directory is in the way.
    pub fn add(&mut self, path: &str, digest: Digest, content: Content, is_executable: bool) -> bool {
        let mut at = &mut self.entries;
        let (dirs, name) = path.rsplit_once('/').unwrap_or(("", path));
        for dir in dirs.split('/').filter(|dir| !dir.is_empty()) {
            match at.entry(dir.to_owned()).or_insert_with(|| Node::Directory(BTreeMap::new())) {
                Node::Directory(entries) => at = entries,
                Node::File(..) => return false,
            }
        }
        if let Some(Node::Directory(_)) = at.get(name) {
            return false;
        }
        at.insert(name.to_owned(), Node::File(digest, is_executable));
        self.blobs.insert(digest, content);
        true
    }

    /// Adds a file with these bytes.
    pub fn add_bytes(&mut self, path: &str, bytes: Vec<u8>) -> bool {
        self.add(path, Digest::of(&bytes), Content::Bytes(bytes.into()), false)
    }

    /// Returns the digest of the root, and all blobs of the tree.
    pub(crate) fn into_blobs(mut self) -> (Digest, Blobs) {
        let root = encode(&self.entries, &mut self.blobs);
        (root, self.blobs)
    }
}

/// Returns the digest of a directory, and adds its message and those below it.
fn encode(entries: &BTreeMap<String, Node>, blobs: &mut Blobs) -> Digest {
    let mut message = api::Directory::default();
    for (name, node) in entries {
        let name = name.clone();
        match node {
            Node::File(digest, is_executable) => message.files.push(api::FileNode {
                name,
                digest: Some((*digest).into()),
                is_executable: *is_executable,
            }),
            Node::Directory(below) => {
                let digest = Some(encode(below, blobs).into());
                message.directories.push(api::DirectoryNode { name, digest });
            }
        }
    }
    add_message(&message, blobs)
}

/// Adds an encoded message as a blob.
pub(crate) fn add_message(message: &impl Message, blobs: &mut Blobs) -> Digest {
    let bytes = message.encode_to_vec();
    let digest = Digest::of(&bytes);
    blobs.insert(digest, Content::Bytes(bytes.into()));
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(paths: &[&str]) -> Tree {
        let mut tree = Tree::default();
        for path in paths {
            assert!(tree.add_bytes(path, path.as_bytes().to_vec()), "{path}");
        }
        tree
    }

    #[test]
    fn the_order_in_which_files_are_added_does_not_matter() {
        let (one, blobs) = tree(&["b/x", "a", "b/c/d"]).into_blobs();
        let (other, _) = tree(&["b/c/d", "b/x", "a"]).into_blobs();
        assert_eq!(one, other);
        // Three files, and a message for each of the root, b and b/c.
        assert_eq!(blobs.len(), 6);
    }

    #[test]
    fn the_empty_tree_is_the_empty_message() {
        assert_eq!(Tree::default().into_blobs().0, Digest::of(b""));
    }

    #[test]
    fn a_file_is_no_directory() {
        let mut tree = tree(&["a/b"]);
        assert!(!tree.add_bytes("a", Vec::new()) && !tree.add_bytes("a/b/c", Vec::new()));
    }
}
