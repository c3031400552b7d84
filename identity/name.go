package identity

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

// nameBytesMax bounds the name of a caller. OpenID Connect bounds a subject to 255 characters.
const nameBytesMax = 512

// aliasCertificate is the alias of callers with a client certificate.
const aliasCertificate = "cert"

// nameOf returns the name of a caller that an issuer calls subject. ok is false if subject is
// empty, too long, or has invisible characters.
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

// isAlias reports whether an issuer may have that alias: a letter, then letters, digits and dashes,
// all in lower case, and not a reserved alias.
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
