use jiff::ToSpan;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};

use super::*;

/// A self-signed pair that is valid in the year 2030.
pub(in crate::kit::tls) fn pair() -> Material {
    let key = KeyPair::generate().expect("a key");
    let certificate = year().self_signed(&key).expect("a certificate");
    Material {
        certificate: certificate.pem().into_bytes(),
        key: key.serialize_pem().into_bytes(),
        ca: None,
        client_ca: None,
    }
}

fn year() -> CertificateParams {
    let mut params = CertificateParams::new(vec!["webhook.test".to_owned()]).expect("parameters");
    params.not_before = date_time_ymd(2030, 1, 1);
    params.not_after = date_time_ymd(2031, 1, 1);
    params
}

fn refusal(material: &Material, demands: &Demands) -> String {
    match check(material, demands, in_time()) {
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
    let checked = check(&pair(), &Demands::default(), in_time());
    let Ok(Checked { term, .. }) = checked else {
        panic!("a good pair was refused");
    };
    assert_eq!(term.not_after.to_string(), "2031-01-01T00:00:00Z");
    assert_eq!(term.overdue().to_string(), "2030-11-25T12:00:00Z");
}

#[test]
fn a_pair_out_of_its_time_is_refused() {
    let at = |time: Timestamp| {
        let checked = check(&pair(), &Demands::default(), time);
        checked.map(|_| ()).expect_err("out of time")
    };
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
        refusal(&material, &Demands::default())
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
            with(|material, _| material.ca = Some(b"nothing".to_vec())),
            "the CA file has no usable PEM certificate: there is none",
        ),
        (
            with(|material, other| material.ca = Some(other.certificate)),
            "the certificate does not lead to the CA file: ",
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
    for clients in [ClientMode::Off, ClientMode::Observe, ClientMode::Require] {
        let demands = Demands {
            clients,
            ..Demands::default()
        };
        assert!(check(&material, &demands, in_time()).is_ok(), "{clients:?}");
    }
}

#[test]
fn to_require_client_certificates_an_authority_is_needed() {
    let demands = Demands {
        clients: ClientMode::Require,
        ..Demands::default()
    };
    assert_eq!(
        refusal(&pair(), &demands),
        "the client CA file has no usable PEM certificate: there is none"
    );
}

#[test]
fn a_certificate_must_have_every_name_that_is_asked_for() {
    let demands = |names: &[&str]| Demands {
        names: names.iter().map(ToString::to_string).collect(),
        ..Demands::default()
    };
    assert!(check(&pair(), &demands(&["webhook.test"]), in_time()).is_ok());
    for (names, expected) in [
        (
            ["webhook.test", "other.test"],
            "the certificate is not for other.test; it is for webhook.test",
        ),
        (
            ["10.0.0.1", "webhook.test"],
            "the certificate is not for 10.0.0.1; it is for webhook.test",
        ),
        (
            ["no name", "webhook.test"],
            "the certificate is not for no name; it is for webhook.test",
        ),
    ] {
        assert_eq!(refusal(&pair(), &demands(&names)), expected);
    }
}

#[test]
fn a_certificate_leads_to_its_issuer_or_to_itself() {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.not_before = date_time_ymd(2029, 1, 1);
    params.not_after = date_time_ymd(2039, 1, 1);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key"));
    let issuer = issuer.expect("an issuer");
    let (key, params) = (KeyPair::generate().expect("a key"), year());
    let issued = params.signed_by(&key, &issuer).expect("a certificate");
    let with = |certificate: String, ca: String| Material {
        certificate: certificate.into_bytes(),
        key: key.serialize_pem().into_bytes(),
        ca: Some(ca.into_bytes()),
        client_ca: None,
    };
    let good = [
        with(issued.pem(), issuer.pem()),
        with(
            issued.pem(),
            format!("{}{}", text(&pair().certificate), issuer.pem()),
        ),
        with(issued.pem(), issued.pem()),
    ];
    for material in good {
        assert!(check(&material, &Demands::default(), in_time()).is_ok());
    }
    let stranger = with(issued.pem(), text(&pair().certificate));
    let said = refusal(&stranger, &Demands::default());
    assert!(
        said.starts_with("the certificate does not lead to the CA file: "),
        "{said}"
    );
}

fn text(pem: &[u8]) -> String {
    String::from_utf8(pem.to_vec()).expect("PEM is text")
}
