/** Version of this code, as package.json says; a test keeps both alike. */
export const version = "0.1.0";
