package identity

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

// nameBytesMax is the maximum length of the name of a caller. OpenID Connect limits a subject to
// 255 characters.
const nameBytesMax = 512

// aliasCertificate is the alias of callers with a client certificate.
const aliasCertificate = "cert"

// nameOf returns the name of a caller. alias is the alias of the issuer, and subject is the
// issuer's name for the caller. ok is false if subject is empty, too long, or has invisible
// characters.
func nameOf(alias, subject string) (name string, ok bool) {
	name = alias + ":" + subject
	return name, subject != "" && isName(name)
}

func isName(name string) bool {
	if len(name) > nameBytesMax || !utf8.ValidString(name) {
		return false
	}
	for _, r := range name {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// isAlias reports whether alias is allowed for an issuer. It must be a lower-case letter followed
// by lower-case letters, digits and dashes, and must not be reserved.
func isAlias(alias string) bool {
	if alias == "" || len(alias) > 64 || slices.Contains(reservedAliases(), alias) {
		return false
	}
	for i, c := range []byte(alias) {
		if (c < 'a' || c > 'z') && (i == 0 || (c < '0' || c > '9') && c != '-') {
			return false
		}
	}
	return true
}

func reservedAliases() []string {
	return []string{"key", aliasCertificate, "system", "anonymous", "moorage"}
}
