//! The OCI archive format: one layer, a configuration, a manifest and an index.

use anyhow::{Result, bail};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{collections::BTreeSet, io::Write};
use tar::{Builder, EntryType, Header};

const EPOCH: &str = "1970-01-01T00:00:00Z";
/// Users a pod may run as by name; most programs want to find their own.
const PASSWD: &str = "root:x:0:0:root:/:/none\nnonroot:x:65532:65532::/:/none\n";
const GROUP: &str = "root:x:0:\nnonroot:x:65532:\n";

/// Writes an image with the given files (absolute path inside, content), all of them executable.
pub(super) fn write(
    to: impl Write,
    name: &str,
    entrypoint: &[String],
    files: &[(&str, Vec<u8>)],
) -> Result<()> {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => bail!("images for {other} are not known"),
    };
    let layer = Blob::new("application/vnd.oci.image.layer.v1.tar", layer(files)?);
    let config = config(architecture, entrypoint, &layer)?;
    let manifest = manifest(&config, &layer)?;
    let mut described = manifest.descriptor();
    described["platform"] = json!({"architecture": architecture, "os": "linux"});
    described["annotations"] = json!({"io.containerd.image.name": name});
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [described],
    });
    let mut archive = Builder::new(to);
    add_file(
        &mut archive,
        "oci-layout",
        br#"{"imageLayoutVersion":"1.0.0"}"#,
        0o644,
    )?;
    add_file(
        &mut archive,
        "index.json",
        &serde_json::to_vec(&index)?,
        0o644,
    )?;
    for blob in [&layer, &config, &manifest] {
        add_file(
            &mut archive,
            &format!("blobs/sha256/{}", blob.hash),
            &blob.content,
            0o644,
        )?;
    }
    archive.into_inner()?.flush()?;
    Ok(())
}

/// How the image runs.
fn config(architecture: &str, entrypoint: &[String], layer: &Blob) -> Result<Blob> {
    Blob::of_json(
        "application/vnd.oci.image.config.v1+json",
        &json!({
            "created": EPOCH,
            "architecture": architecture,
            "os": "linux",
            "config": {"Entrypoint": entrypoint, "Env": ["PATH=/"], "WorkingDir": "/"},
            "rootfs": {"type": "layers", "diff_ids": [layer.digest()]},
            "history": [{"created": EPOCH}],
        }),
    )
}

/// What the image consists of.
fn manifest(config: &Blob, layer: &Blob) -> Result<Blob> {
    let media_type = "application/vnd.oci.image.manifest.v1+json";
    Blob::of_json(
        media_type,
        &json!({
            "schemaVersion": 2,
            "mediaType": media_type,
            "config": config.descriptor(),
            "layers": [layer.descriptor()],
        }),
    )
}

/// A piece of content known by its hash.
struct Blob {
    media_type: &'static str,
    content: Vec<u8>,
    hash: String,
}

impl Blob {
    fn new(media_type: &'static str, content: Vec<u8>) -> Self {
        let hash = format!("{:x}", Sha256::digest(&content));
        Self {
            media_type,
            content,
            hash,
        }
    }

    fn of_json(media_type: &'static str, value: &Value) -> Result<Self> {
        Ok(Self::new(media_type, serde_json::to_vec(value)?))
    }

    fn digest(&self) -> String {
        format!("sha256:{}", self.hash)
    }

    fn descriptor(&self) -> Value {
        json!({"mediaType": self.media_type, "digest": self.digest(), "size": self.content.len()})
    }
}

fn layer(files: &[(&str, Vec<u8>)]) -> Result<Vec<u8>> {
    let mut layer = Builder::new(Vec::new());
    let mut folders = BTreeSet::new();
    add_folder(&mut layer, &mut folders, "etc", 0o755)?;
    add_folder(&mut layer, &mut folders, "tmp", 0o1777)?;
    add_file(&mut layer, "etc/passwd", PASSWD.as_bytes(), 0o644)?;
    add_file(&mut layer, "etc/group", GROUP.as_bytes(), 0o644)?;
    for (path, content) in files {
        let Some(path) = path.strip_prefix('/') else {
            bail!("`{path}` is not an absolute path inside an image");
        };
        for (at, _) in path.match_indices('/') {
            add_folder(&mut layer, &mut folders, &path[..at], 0o755)?;
        }
        add_file(&mut layer, path, content, 0o755)?;
    }
    Ok(layer.into_inner()?)
}

fn add_folder(
    to: &mut Builder<Vec<u8>>,
    known: &mut BTreeSet<String>,
    path: &str,
    mode: u32,
) -> Result<()> {
    if known.insert(path.to_owned()) {
        let header = header(EntryType::Directory, 0, mode);
        append(to, header, &format!("{path}/"), &[])?;
    }
    Ok(())
}

fn add_file<W: Write>(to: &mut Builder<W>, path: &str, content: &[u8], mode: u32) -> Result<()> {
    append(
        to,
        header(EntryType::Regular, content.len() as u64, mode),
        path,
        content,
    )
}

fn append<W: Write>(
    to: &mut Builder<W>,
    mut header: Header,
    path: &str,
    content: &[u8],
) -> Result<()> {
    Ok(to.append_data(&mut header, path, content)?)
}

/// A header that says nothing about when, where and by whom.
fn header(kind: EntryType, size: u64, mode: u32) -> Header {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(mode);
    header.set_mtime(0);
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{collections::BTreeMap, io::Read};

    fn made() -> Vec<u8> {
        let mut bytes = Vec::new();
        let files = [("/usr/bin/program", b"content".to_vec())];
        write(
            &mut bytes,
            "localhost/x:1",
            &["/usr/bin/program".to_owned()],
            &files,
        )
        .unwrap();
        bytes
    }

    fn entries(archive: &[u8]) -> BTreeMap<String, (u32, Vec<u8>)> {
        let mut archive = tar::Archive::new(archive);
        let entries = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            let path = entry.path().unwrap().display().to_string();
            (path, (entry.header().mode().unwrap(), content))
        });
        entries.collect()
    }

    #[test]
    fn the_same_files_give_the_same_bytes() {
        assert_eq!(made(), made());
    }

    #[test]
    fn every_blob_is_named_by_its_hash_and_reached_from_the_index() {
        let entries = entries(&made());
        let blob = |descriptor: &Value| {
            let digest = descriptor["digest"]
                .as_str()
                .unwrap()
                .strip_prefix("sha256:")
                .unwrap();
            let (_, content) = &entries[&format!("blobs/sha256/{digest}")];
            assert_eq!(format!("{:x}", Sha256::digest(content)), digest);
            assert_eq!(descriptor["size"], content.len());
            content.clone()
        };
        let index: Value = serde_json::from_slice(&entries["index.json"].1).unwrap();
        let manifest: Value = serde_json::from_slice(&blob(&index["manifests"][0])).unwrap();
        let config: Value = serde_json::from_slice(&blob(&manifest["config"])).unwrap();
        assert_eq!(config["config"]["Entrypoint"], json!(["/usr/bin/program"]));
        let layer = self::entries(&blob(&manifest["layers"][0]));
        let modes: Vec<_> = layer
            .iter()
            .map(|(path, (mode, _))| (path.as_str(), *mode))
            .collect();
        assert_eq!(
            modes,
            [
                ("etc/", 0o755),
                ("etc/group", 0o644),
                ("etc/passwd", 0o644),
                ("tmp/", 0o1777),
                ("usr/", 0o755),
                ("usr/bin/", 0o755),
                ("usr/bin/program", 0o755),
            ]
        );
    }
}
