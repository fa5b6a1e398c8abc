// Removes secrets from text for logs.

/** Replaces a secret by asterisks. */
export function withoutSecret(text: string, secret: string): string {
  return secret === '' ? text : text.replaceAll(secret, '***')
}
