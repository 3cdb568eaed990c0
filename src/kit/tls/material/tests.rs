use jiff::ToSpan;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};

use super::*;

/// A self-signed pair that is valid in the year 2030.
pub(in crate::kit::tls) fn pair() -> Material {
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(vec!["webhook.test".to_owned()]).expect("parameters");
    params.not_before = date_time_ymd(2030, 1, 1);
    params.not_after = date_time_ymd(2031, 1, 1);
    let certificate = params.self_signed(&key).expect("a certificate");
    Material {
        certificate: certificate.pem().into_bytes(),
        key: key.serialize_pem().into_bytes(),
        client_ca: None,
    }
}

fn refusal(material: &Material) -> String {
    match check(material, in_time()) {
        Ok(_) => panic!("the material should have been refused"),
        Err(refused) => refused.to_string(),
    }
}

/// A time in that year.
pub(in crate::kit::tls) fn in_time() -> Timestamp {
    "2030-06-01T00:00:00Z".parse().expect("a time")
}

#[test]
fn a_good_pair_is_accepted_with_its_end() {
    let checked = check(&pair(), in_time());
    let Ok(Checked { config, not_after }) = checked else {
        panic!("a good pair was refused");
    };
    assert_eq!(not_after.to_string(), "2031-01-01T00:00:00Z");
    assert_eq!(
        config.alpn_protocols,
        [b"h2".to_vec(), b"http/1.1".to_vec()]
    );
}

#[test]
fn a_pair_out_of_its_time_is_refused() {
    let at = |time: Timestamp| check(&pair(), time).map(|_| ()).expect_err("out of time");
    let start: Timestamp = "2030-01-01T00:00:00Z".parse().expect("a time");
    let end: Timestamp = "2031-01-01T00:00:00Z".parse().expect("a time");
    assert_eq!(at(start - 1.second()), Refused::Early { not_before: start });
    assert_eq!(at(end), Refused::Expired { not_after: end });
}

#[test]
fn every_kind_of_broken_file_has_its_own_sentence() {
    let good = pair();
    let with = |change: fn(&mut Material, Material)| {
        let mut material = good.clone();
        change(&mut material, pair());
        refusal(&material)
    };
    let cases = [
        (
            with(|material, _| material.certificate.clear()),
            "the certificate file has no usable PEM certificate: there is none",
        ),
        (
            with(|material, _| material.certificate.truncate(200)),
            "the certificate file has no usable PEM certificate: ",
        ),
        (
            with(|material, _| material.key.clear()),
            "the key file does not fit the certificate: ",
        ),
        (
            with(|material, other| material.key = other.key),
            "the key file does not fit the certificate: ",
        ),
        (
            with(|material, _| material.certificate = material.key.clone()),
            "the certificate file has no usable PEM certificate: there is none",
        ),
        (
            with(|material, _| material.client_ca = Some(b"nothing".to_vec())),
            "the client CA file has no usable PEM certificate: there is none",
        ),
    ];
    for (got, expected) in cases {
        assert!(got.starts_with(expected), "{got:?} is not {expected:?}");
    }
}

#[test]
fn a_client_authority_is_part_of_the_configuration() {
    let mut material = pair();
    material.client_ca = Some(pair().certificate);
    assert!(check(&material, in_time()).is_ok());
}
