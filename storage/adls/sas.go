package adls

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// The permissions of a signature, in the order that Azure wants: read, add, create, write, delete
// and list.
const (
	permissionsRead  = "rl"
	permissionsWrite = "racwdl"
)

const (
	// sasTime is how a signature spells times.
	sasTime = "2006-01-02T15:04:05Z"
	// sasDirectory is the word for a signature for what is at and below a directory.
	sasDirectory = "d"
	// sasHTTPS is the word for a signature that is good over HTTPS only.
	sasHTTPS = "https"
)

// delegationKey is a user delegation key: what Azure gives to an identity, to sign with. It is a
// secret.
type delegationKey struct {
	ObjectID string    `xml:"SignedOid"`
	TenantID string    `xml:"SignedTid"`
	Start    time.Time `xml:"SignedStart"`
	Expiry   time.Time `xml:"SignedExpiry"`
	Service  string    `xml:"SignedService"`
	Version  string    `xml:"SignedVersion"`
	Value    string    `xml:"Value"` // base64
}

// grant is what a signature allows.
type grant struct {
	account, container string
	directory          string // segments with a slash between each two, at least one
	permissions        string
	expiry             time.Time
}

// sign returns a shared access signature: the query of URLs that it makes good, without the
// question mark.
//
// Source: REST API of Azure Storage, "Create a user delegation SAS", for the versions from
// 2020-12-06 on to those before 2025-07-05.
func (g grant) sign(key delegationKey) (string, error) {
	secret, err := base64.StdEncoding.DecodeString(key.Value)
	if err != nil || len(secret) == 0 {
		return "", fmt.Errorf("adls: Azure's user delegation key cannot be read")
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(g.stringToSign(key)))
	query := url.Values{
		"sv":  {serviceVersion},
		"sr":  {sasDirectory},
		"sdd": {strconv.Itoa(g.depth())},
		"sp":  {g.permissions},
		"se":  {g.expiry.UTC().Format(sasTime)},
		"spr": {sasHTTPS},

		"skoid": {key.ObjectID},
		"sktid": {key.TenantID},
		"skt":   {key.Start.UTC().Format(sasTime)},
		"ske":   {key.Expiry.UTC().Format(sasTime)},
		"sks":   {key.Service},
		"skv":   {key.Version},

		"sig": {base64.StdEncoding.EncodeToString(mac.Sum(nil))},
	}
	return query.Encode(), nil
}

// depth returns how many segments of a path Azure compares.
func (g grant) depth() int { return strings.Count(g.directory, "/") + 1 }

// stringToSign returns what is signed. Its fields that are empty narrow a signature in ways that
// are not used here.
func (g grant) stringToSign(key delegationKey) string {
	return strings.Join([]string{
		g.permissions,
		"", // from when on it is good: at once
		g.expiry.UTC().Format(sasTime),
		"/blob/" + g.account + "/" + g.container + "/" + g.directory,
		key.ObjectID,
		key.TenantID,
		key.Start.UTC().Format(sasTime),
		key.Expiry.UTC().Format(sasTime),
		key.Service,
		key.Version,
		"", // the user on whose behalf it is used, who needs no check of his own
		"", // the same, who needs one
		"", // the id by which logs know it
		"", // the addresses from which it is good
		sasHTTPS,
		serviceVersion,
		sasDirectory,
		"", // the time of a snapshot
		"", // the scope of an encryption
		"", // five headers of answers
		"",
		"",
		"",
		"",
	}, "\n")
}
