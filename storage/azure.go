package storage

import "strings"

// A location in Azure names a container, the host of an account, and a path:
//
//	abfss://container@account.dfs.core.windows.net/path
//
// Hadoop's drivers also write the schemes abfs, wasb and wasbs. wasb and wasbs have the account's
// host for blobs. All spellings name the same files.
const (
	azureFolders = "dfs"  // the label of a host for folders and files
	azureBlobs   = "blob" // the label of a host for blobs

	azureContainerBytesMin, azureContainerBytesMax = 3, 63
	azureAccountBytesMin, azureAccountBytesMax     = 3, 24
)

// isAzure reports whether a scheme, in lower case, is one of Azure's.
func isAzure(scheme string) bool {
	switch scheme {
	case SchemeAzure, "abfs", "wasb", "wasbs":
		return true
	}
	return false
}

// azureAuthority returns the normal form of the authority of a location in Azure: lower case, with
// the host for folders.
func azureAuthority(location, authority string) (string, error) {
	container, host, found := strings.Cut(lowerASCII(authority), "@")
	switch {
	case !found:
		return "", malformed(location, "it must have the form abfss://container@account.dfs.core.windows.net/path")
	case !isAzureContainer(container):
		return "", malformed(location, "that is not a valid name of a container in Azure")
	}
	account, zone, kind, suffix := cutAzureHost(host)
	isHost := isAzureName(account, azureAccountBytesMin, azureAccountBytesMax) &&
		(kind == azureFolders || kind == azureBlobs) && isHostName(suffix)
	if !isHost {
		return "", malformed(location, "its host must have the form account.dfs.core.windows.net")
	}
	return container + "@" + account + zone + "." + azureFolders + "." + suffix, nil
}

// cutAzureHost splits the host of an account into the account's name, the zone, the kind ("dfs" or
// "blob"), and the rest. Few accounts have a zone, such as account.z01.dfs.storage.azure.net. The
// zone is returned with the dot before it.
func cutAzureHost(host string) (account, zone, kind, suffix string) {
	account, rest, _ := strings.Cut(host, ".")
	kind, suffix, _ = strings.Cut(rest, ".")
	if len(kind) == len("z01") && kind[0] == 'z' && isAzureName(kind, 1, len(kind)) {
		zone = "." + kind
		kind, suffix, _ = strings.Cut(suffix, ".")
	}
	return account, zone, kind, suffix
}

// isAzureContainer reports whether name has the form of a container's name: letters, digits, and
// single hyphens between them.
func isAzureContainer(name string) bool {
	plain := strings.ReplaceAll(name, "-", "0")
	return isAzureName(plain, azureContainerBytesMin, azureContainerBytesMax) &&
		name[0] != '-' && name[len(name)-1] != '-' && !strings.Contains(name, "--")
}

// isAzureName reports whether name has only lower-case letters and digits.
func isAzureName(name string, bytesMin, bytesMax int) bool {
	if len(name) < bytesMin || len(name) > bytesMax {
		return false
	}
	for i := range len(name) {
		if c := name[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// isHostName reports whether name, in lower case, can be the end of a host name.
func isHostName(name string) bool {
	for label := range strings.SplitSeq(name, ".") {
		if !isAzureName(strings.ReplaceAll(label, "-", "0"), 1, 63) {
			return false
		}
	}
	return true
}

// checkAzurePath returns ErrLocation for a path that Azure may confuse with another path. The path
// has the form of Location.Path. Azure reads a backslash as a slash, and drops a dot at the end of
// a name. In a hierarchical account, every folder has a name.
func checkAzurePath(location, path string) error {
	switch path += "/"; {
	case strings.Contains(path, `\`):
		return malformed(location, "Azure reads a backslash as a slash")
	case strings.Contains(path, "./"):
		return malformed(location, "Azure has no names that end in a dot")
	case strings.Contains(path, "//") && path != "//":
		return malformed(location, "Azure has no names that are empty")
	}
	return nil
}

// lowerASCII returns text with A to Z in lower case, and everything else unchanged.
func lowerASCII(text string) string {
	return strings.Map(func(c rune) rune {
		if 'A' <= c && c <= 'Z' {
			return c + ('a' - 'A')
		}
		return c
	}, text)
}

// AzureBlobHost returns the host for blobs of an account. host is the account's host in the normal
// form of a location.
func AzureBlobHost(host string) string {
	account, zone, _, suffix := cutAzureHost(host)
	return account + zone + "." + azureBlobs + "." + suffix
}
