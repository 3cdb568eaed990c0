//! Tokens as the API server of the lab signs them.

use anyhow::{Context, Result, anyhow};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use rcgen::KeyPair;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::{Value, json};
use support::lab;

/// The same token with another end, in seconds since 1970. The key of the lab signs it, so that nothing else is wrong with it.
pub(super) async fn good_until(token: &str, end: i64) -> Result<String> {
    let mut parts = token.split('.');
    let (head, claims) = (parts.next(), parts.next().context("no claims")?);
    let mut claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims)?)?;
    claims["exp"] = json!(end);
    let claims = URL_SAFE_NO_PAD.encode(claims.to_string());
    let text = format!("{}.{claims}", head.unwrap_or_default());
    let folder = lab::shared().await?.kubeconfig().parent();
    let key = folder.context("no folder")?.join("pki/service-account.key");
    let key = KeyPair::from_pem(&std::fs::read_to_string(key)?)?.serialize_der();
    let random = SystemRandom::new();
    let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &key, &random);
    let key = key.map_err(|error| anyhow!("the key of the lab: {error}"))?;
    let signed = key.sign(&random, text.as_bytes());
    let signed = signed.map_err(|_| anyhow!("the token could not be signed"))?;
    Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signed)))
}
