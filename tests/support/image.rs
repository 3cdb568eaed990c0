//! Container images made of static programs, without any registry or container tool.
//!
//! The same files always give the same bytes, so importing an image again changes nothing.

mod archive;
mod programs;
pub mod release;
mod sbom;

pub use programs::{OwnPrograms, build_local, build_static, lacks_library, static_obstacle};

use anyhow::{Context, Result};
use std::{
    fs::{self, File},
    io::BufWriter,
    path::{Path, PathBuf},
};

/// Where the certificates of authorities are in an image of the product.
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";
/// Where systems have them.
const BUNDLES: &[&str] = &[AUTHORITIES, "/etc/pki/tls/certs/ca-bundle.crt"];

/// What goes into an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    name: String,
    entrypoint: Vec<String>,
    files: Vec<(String, PathBuf)>,
}

impl Image {
    /// An image called `name` (such as `localhost/agents:1`) that runs `program`, a static binary of this machine.
    pub fn of_program(name: &str, program: &Path) -> Result<Self> {
        let file = program.file_name().and_then(|file| file.to_str());
        let inside = format!(
            "/{}",
            file.with_context(|| format!("{} is no program", program.display()))?
        );
        Ok(Self {
            name: name.to_owned(),
            entrypoint: vec![inside.clone()],
            files: vec![(inside, program.to_owned())],
        })
    }

    /// The same with what else the Dockerfile puts beside a program of the product: whom it trusts.
    pub fn of_product(name: &str, program: &Path) -> Result<Self> {
        let mut image = Self::of_program(name, program)?;
        let mut known = BUNDLES.iter().map(Path::new);
        let bundle = known.find(|bundle| bundle.is_file());
        let bundle = bundle.context(
            "this machine has no certificates of authorities (on Debian: ca-certificates)",
        )?;
        image
            .files
            .push((AUTHORITIES.to_owned(), bundle.to_owned()));
        Ok(image)
    }

    /// The same image under another name.
    pub fn named(&self, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..self.clone()
        }
    }

    /// Where its files are.
    pub fn inside(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|(inside, _)| inside.as_str())
    }

    /// The name to use in a pod.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Writes the image as an OCI archive.
    pub fn write(&self, path: &Path) -> Result<()> {
        let mut files = Vec::new();
        for (inside, outside) in &self.files {
            let content = fs::read(outside)
                .with_context(|| format!("could not read {}", outside.display()))?;
            files.push((inside.as_str(), content));
        }
        let file =
            File::create(path).with_context(|| format!("could not write {}", path.display()))?;
        archive::write(BufWriter::new(file), &self.name, &self.entrypoint, &files)
    }
}
