// The folder for downloads and builds of the tests: the user's cache folder, never the repository.

import { homedir } from 'node:os'
import { join } from 'node:path'

export const cacheFolder = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'penstock')
