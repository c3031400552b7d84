package s3

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"hash/crc32"
	"hash/crc64"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// crc64NVME is the polynomial of CRC-64/NVME, in the order of bits that package crc64 wants.
const crc64NVME = 0x9a6c9329ac4bc9b5

// checksum returns the checksum that the server has for the whole of an object, and the hash that
// must equal it. It returns nil if the server has none of a known kind. Objects that were written
// in parts have checksums of their parts' checksums, which do not help.
func checksum(found *s3.GetObjectOutput) (hash.Hash, []byte) {
	if found.ChecksumType == types.ChecksumTypeComposite {
		return nil, nil
	}
	for _, candidate := range []struct {
		text *string
		make func() hash.Hash
	}{
		{found.ChecksumSHA256, sha256.New},
		{found.ChecksumCRC64NVME, func() hash.Hash { return crc64.New(crc64.MakeTable(crc64NVME)) }},
		{found.ChecksumCRC32C, func() hash.Hash { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) }},
		{found.ChecksumCRC32, func() hash.Hash { return crc32.NewIEEE() }},
		{found.ChecksumSHA1, sha1.New},
	} {
		if candidate.text == nil {
			continue
		}
		sum := candidate.make()
		want, err := base64.StdEncoding.DecodeString(*candidate.text)
		if err == nil && len(want) == sum.Size() {
			return sum, want
		}
	}
	return nil, nil
}
