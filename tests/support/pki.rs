//! A throw-away authority and certificates of it, in memory. That of a lab, which lives in files, is in [`crate::lab::pki`].

use anyhow::Result;
use jiff::{ToSpan, Zoned};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use rustls::{
    ClientConfig, ConfigBuilder, RootCertStore,
    client::WantsClientCert,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use std::sync::Arc;

fn params(names: &[&str]) -> Result<CertificateParams> {
    let names: Vec<_> = names.iter().map(ToString::to_string).collect();
    Ok(CertificateParams::new(names)?)
}

/// The begin of a client that trusts an authority.
fn trusting(
    authority: CertificateDer<'static>,
) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>> {
    let mut roots = RootCertStore::empty();
    roots.add(authority)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots))
}

/// What a client needs to trust an authority of others, which is given in PEM.
pub fn client_of(authority: &[u8]) -> Result<ClientConfig> {
    let authority = CertificateDer::from_pem_slice(authority)?;
    Ok(trusting(authority)?.with_no_client_auth())
}

/// Issues certificates.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key.
#[derive(Clone)]
pub struct Pair {
    /// The certificate.
    pub certificate: CertificateDer<'static>,
    /// The same, in PEM.
    pub certificate_pem: String,
    /// Its key, in PEM.
    pub key_pem: String,
}

impl Authority {
    /// One that nobody knows yet.
    pub fn make() -> Result<Self> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate()?;
        Ok(Self(CertifiedIssuer::self_signed(params, key)?))
    }

    /// A certificate for host names and addresses.
    pub fn issue(&self, names: &[&str]) -> Result<Pair> {
        self.sign(&params(names)?)
    }

    /// The same, which ends in so many days.
    pub fn issue_for_days(&self, names: &[&str], days: i32) -> Result<Pair> {
        let mut params = params(names)?;
        let end = Zoned::now().date().checked_add(days.days())?;
        let (month, day) = (end.month().try_into()?, end.day().try_into()?);
        params.not_after = date_time_ymd(end.year().into(), month, day);
        self.sign(&params)
    }

    fn sign(&self, params: &CertificateParams) -> Result<Pair> {
        let key = KeyPair::generate()?;
        let certificate = params.clone().signed_by(&key, &self.0)?;
        Ok(Pair {
            certificate: certificate.der().clone(),
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
        })
    }

    /// Its own certificate, in PEM.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// What a client needs to trust it, and to show a certificate of its own if one is given.
    pub fn client(&self, own: Option<Pair>) -> Result<ClientConfig> {
        let builder = trusting(self.0.der().clone())?;
        Ok(match own {
            None => builder.with_no_client_auth(),
            Some(pair) => {
                let key = PrivateKeyDer::from_pem_slice(pair.key_pem.as_bytes())?;
                builder.with_client_auth_cert(vec![pair.certificate], key)?
            }
        })
    }
}
