// What the sinks of services behind AWS signatures share: a client for the requests about credentials, and the signing.

import { PenstockError } from '../errors.ts'
import { HttpClient } from '../http/client.ts'
import type { Sign } from '../http/sink.ts'
import { compileProxy } from '../net/proxy.ts'
import { compileTls } from '../net/tls.ts'
import type { ProxyOptions } from '../schema/groups.ts'
import { type AwsAuth, CredentialProvider } from './credentials.ts'
import { nodeClientFor } from './node-client.ts'
import { findRegion } from './region.ts'
import { signRequest } from './sigv4.ts'

/** Throws a PenstockError if no place names the region. */
export async function signedClient(
  service: string,
  auth: AwsAuth,
  region: string | undefined,
  tls: Parameters<typeof compileTls>[0],
  proxy: ProxyOptions,
): Promise<{ readonly client: HttpClient; readonly sign: Sign }> {
  const { env } = process
  const client = new HttpClient({ tls: compileTls(tls), proxy: compileProxy(proxy) })
  const nodeClient = nodeClientFor(proxy)
  const found = await findRegion(region, auth, { client, nodeClient, env })
  if (found === undefined) {
    await client.close()
    await nodeClient?.close()
    throw new PenstockError(
      'PEN_AUTH',
      'aws.region required when AWS authentication is in use. Neither AWS_REGION, nor a profile, nor the instance names one.',
    )
  }
  const credentials = new CredentialProvider(auth, { client, nodeClient, env, region: found })
  const scope = { region: found, service }
  return { client, sign: async (unsigned) => signRequest(unsigned, await credentials.get(), scope, Date.now()) }
}
