package jobs

// FindMost sets the maximum number of leftovers found.
func (s *LeftoverSettings) FindMost(files int) { s.most = files }
