package main

import (
	"moorage/storage/s3"
)

// nodeSettings returns the settings of every command that opens a catalog.
func nodeSettings() []setting { return append(storeSettings(), s3Settings()...) }

// s3Settings returns the settings that say how S3 is reached, as far as a warehouse does not say it itself.
func s3Settings() []setting {
	const amazon = " For warehouses that were made without one."
	return []setting{
		{
			name: "s3-endpoint", value: "URL",
			usage: "S3 server of warehouses on s3://, such as http://127.0.0.1:9000; engines are told it too." + amazon +
				" Default: what AWS_ENDPOINT_URL_S3 says, else Amazon's.",
			set: func(c *config, v []string) error {
				c.S3Endpoint = v[0]
				return s3.CheckEndpoint(v[0])
			},
		},
		{
			name: "s3-region", value: "REGION",
			usage: "Region of the buckets." + amazon + " Default: what AWS_REGION or the profile says, else us-east-1.",
			set:   text(func(c *config, v string) { c.S3Region = v }),
		},
		{
			name: "s3-path-style", value: "true|false",
			usage: "Whether the bucket is a part of the path rather than of the host's name." + amazon + " Default: true if there is an endpoint.",
			set:   one(oneOf("true", "false"), "true or false", func(c *config, v string) { c.S3PathStyle = v }),
		},
		{
			name: "s3-profile", value: "NAME",
			usage: "Section of the shared AWS configuration files that has the credentials." + amazon,
			set:   text(func(c *config, v string) { c.S3Profile = v }),
		},
		{
			name: "s3-access-key-id", value: "ID",
			usage: "Static credentials, for warehouses without a profile. Default: the chain of the AWS SDKs (environment, " +
				"shared files, web identity, container, instance).",
			set: text(func(c *config, v string) { c.S3AccessKeyID = v }),
		},
		{
			name: "s3-secret-access-key", value: "SECRET",
			usage: "The secret that belongs to it. Better a variable or the file: other users of the machine can see command lines.",
			set:   text(func(c *config, v string) { c.S3SecretAccessKey = v }),
		},
	}
}

// validateS3 finds credentials of which one half is missing.
func validateS3(c config, faults *usageError) {
	if (c.S3AccessKeyID == "") != (c.S3SecretAccessKey == "") {
		faults.addf("--s3-access-key-id and --s3-secret-access-key go together")
	}
}

// s3Options returns how S3 is reached where a warehouse does not say it. Its settings were checked one by one.
func (c config) s3Options() s3.Options {
	options, _ := s3.Options{AccessKeyID: c.S3AccessKeyID, SecretAccessKey: c.S3SecretAccessKey}.With(c.s3Place())
	// A profile of the server as a whole does not take its static credentials away.
	options.AccessKeyID, options.SecretAccessKey = c.S3AccessKeyID, c.S3SecretAccessKey
	return options
}

// s3Place returns the settings as options of a place: all but the secrets.
func (c config) s3Place() map[string]string {
	place := make(map[string]string)
	for name, value := range map[string]string{
		s3.OptionEndpoint: c.S3Endpoint, s3.OptionRegion: c.S3Region, s3.OptionPathStyle: c.S3PathStyle, s3.OptionProfile: c.S3Profile,
	} {
		if value != "" {
			place[name] = value
		}
	}
	return place
}
