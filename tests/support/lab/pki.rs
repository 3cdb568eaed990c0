//! Throw-away keys, certificates and kubeconfigs, one authority per lab.
//!
//! Writes files only; nothing here outlives the lab's folder.

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use serde_json::json;
use std::{
    fs::{self, OpenOptions},
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

/// Who a certificate speaks for.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// User name in Kubernetes.
    pub name: &'a str,
    /// Group in Kubernetes; none if empty.
    pub group: &'a str,
    /// Host names and addresses, for servers.
    pub hosts: &'a [&'a str],
}

/// A certificate authority and the folder its files are in.
pub struct Authority {
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Makes an authority; its certificate is `ca.crt`.
    pub fn make(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let mut params = CertificateParams::default();
        params.distinguished_name = distinguished_name("lab-ca", "");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        fs::write(folder.join("ca.crt"), certificate.pem())?;
        Ok(Self {
            folder: folder.to_owned(),
            issuer: Issuer::new(params, key),
        })
    }

    /// The authority's certificate.
    pub fn certificate(&self) -> PathBuf {
        self.folder.join("ca.crt")
    }

    /// Issues `<file>.crt` and `<file>.key`, good for clients and servers.
    pub fn issue(&self, file: &str, subject: Subject<'_>) -> Result<()> {
        let hosts: Vec<String> = subject.hosts.iter().map(|&host| host.to_owned()).collect();
        let mut params = CertificateParams::new(hosts)?;
        params.distinguished_name = distinguished_name(subject.name, subject.group);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        fs::write(self.folder.join(format!("{file}.crt")), certificate.pem())?;
        write_private(
            &self.folder.join(format!("{file}.key")),
            &key.serialize_pem(),
        )
    }

    /// Writes the pair that signs service-account tokens, `<file>.key` and `<file>.pub`.
    pub fn signing_pair(&self, file: &str) -> Result<()> {
        let key = KeyPair::generate()?;
        fs::write(
            self.folder.join(format!("{file}.pub")),
            key.public_key_pem(),
        )?;
        write_private(
            &self.folder.join(format!("{file}.key")),
            &key.serialize_pem(),
        )
    }

    /// Writes a kubeconfig for the holder of `<file>.crt` (JSON, which every reader of YAML takes).
    pub fn kubeconfig(&self, path: &Path, file: &str, server: &str) -> Result<()> {
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "lab",
            "clusters": [{"name": "lab", "cluster": {
                "server": server,
                "certificate-authority": self.certificate(),
            }}],
            "users": [{"name": file, "user": {
                "client-certificate": self.folder.join(format!("{file}.crt")),
                "client-key": self.folder.join(format!("{file}.key")),
            }}],
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": file}}],
        });
        write_private(path, &serde_json::to_string_pretty(&config)?)
    }
}

fn distinguished_name(name: &str, group: &str) -> DistinguishedName {
    let mut full = DistinguishedName::new();
    if !group.is_empty() {
        full.push(DnType::OrganizationName, group);
    }
    full.push(DnType::CommonName, name);
    full
}

/// Writes a file that only this user can read, from its first byte on.
fn write_private(path: &Path, content: &str) -> Result<()> {
    OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(content.as_bytes()))
        .with_context(|| format!("could not write {}", path.display()))
}
