package jobs

import "time"

// FindMost bounds how many leftovers are found.
func (s *LeftoverSettings) FindMost(files int) { s.most = files }

// LookFor bounds how old the look before a deletion may be.
func (j *Jobs) LookFor(limit time.Duration) { j.lookMax = limit }
