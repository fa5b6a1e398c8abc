// Finds the region of a service: the option, or else the environment, the profile, or the instance.

import { timeoutSignal } from '../clock.ts'
import type { HttpClient } from '../http/client.ts'
import type { Identity } from '../http/identity.ts'
import { type AwsAuth, type AwsContext, environmentRegion, InstanceMetadata, imdsBudgetMs } from './credentials.ts'
import { cloudVariable, readProfiles } from './profiles.ts'

/** Undefined if there is none. Uses the network only if the option, the environment and the profile contain no region. */
export async function findRegion(
  given: string | undefined,
  auth: Pick<AwsAuth, 'credentials_file' | 'profile' | 'imds'>,
  { client, identity }: Pick<AwsContext, 'client' | 'identity'>,
): Promise<string | undefined> {
  if (given !== undefined || identity === undefined) return given
  const { env } = identity
  const known = environmentRegion(env)
  if (known !== undefined) return known
  const name = auth.profile ?? cloudVariable(env, 'PROFILE') ?? 'default'
  const profile = (await readProfiles(env, auth.credentials_file)).get(name)
  return profile?.['region'] ?? (await ofInstance(auth.imds, identity, client))
}

async function ofInstance(imds: AwsAuth['imds'], identity: Identity, client: HttpClient): Promise<string | undefined> {
  const signal = timeoutSignal(imdsBudgetMs({ imds }))
  const metadata = new InstanceMetadata(identity, client, imds, signal)
  try {
    const token = await metadata.token()
    const region = token === undefined ? undefined : await metadata.get('/latest/meta-data/placement/region', token)
    return region === undefined || region.trim() === '' ? undefined : region.trim()
  } catch (error) {
    if (signal.aborted) return undefined // outside an instance nothing responds
    throw error
  }
}
